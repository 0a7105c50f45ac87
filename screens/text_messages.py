"""What a TextView tells the widgets above it."""

from __future__ import annotations

from textual.message import Message

from screens.lines import Subject


class CopyText(Message):
    """Somebody wants this text on the clipboard."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.text = text


class FollowLink(Message):
    """Somebody wants the details of what a link leads to."""

    def __init__(self, subject: Subject) -> None:
        super().__init__()
        self.subject = subject


class PagerWanted(Message):
    """Somebody wants to read a file in the pager on the machine that has it: a node, or the head when that is ""."""

    def __init__(self, node: str, path: str) -> None:
        super().__init__()
        self.node, self.path = node, path
