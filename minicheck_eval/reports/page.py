"""A terminal that texts of cases are printed on: as text, in its encoding, with an end."""

from __future__ import annotations

from rich.console import Console
from rich.padding import Padding
from rich.text import Text

from minicheck_eval.reports.plain import plain

__all__ = ["Page"]


class Page:
    """Prints lines on one console; what a case holds is never markup, and a line ends after `most` characters."""

    def __init__(self, console: Console, *, most: int) -> None:
        self.console = console
        self.most = most

    def line(self, text: str, *, indent: int = 0, style: str = "") -> None:
        """Print a line; where it is folded, it stays indented."""
        self.console.print(Padding(self.text(text, style=style), (0, 0, 0, indent), expand=False))

    def text(self, text: str, *, style: str = "") -> Text:
        """Make a text that the console can show."""
        # Text, not a string: square brackets in a case are no markup.
        return Text(plain(text, self.console.encoding, most=self.most), style=style, overflow="fold")
