"""Shows comments behind fields in the reference: `fitness: Array  #: (n,) NaN where invalid`."""

from __future__ import annotations

from typing import Any

from griffe import Attribute, Docstring, Extension


class FieldComments(Extension):
    """Uses a `#:` comment on the line of a field as its docstring."""

    def on_attribute(self, *, attr: Attribute, **_rest: Any) -> None:
        """Take the comment, unless a docstring follows the field."""
        if attr.docstring is None and attr.lines:
            _, mark, comment = attr.lines[-1].partition("#: ")
            if mark:
                attr.docstring = Docstring(comment.strip(), lineno=attr.endlineno, parent=attr)
