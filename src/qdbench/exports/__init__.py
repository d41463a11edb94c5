"""What leaves qdbench: policies for other programs, archives for other libraries, and both of them back."""
