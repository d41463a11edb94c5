"""Runs on the nodes of a Ray cluster. Ray is imported only here, and only when it is asked for."""
