"""What a Heatmap tells the widgets above it. Handlers are named `on_heatmap_opened` and so on."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from textual.message import Message

if TYPE_CHECKING:
    from screens.heatmap import Heatmap
    from screens.heatmap_core import HeatmapCore


class HeatmapMessage(Message, namespace="heatmap"):
    """Carries the heatmap that sent it and a cell; `control` lets `@on(..., "#id")` select by the heatmap."""

    def __init__(self, heatmap: HeatmapCore, row_key: str | None, column: int) -> None:
        super().__init__()
        self.heatmap = cast("Heatmap", heatmap)
        self.row_key = row_key
        self.column = column

    @property
    def control(self) -> Heatmap:
        """The heatmap that sent this."""
        return self.heatmap


class Opened(HeatmapMessage, namespace="heatmap"):
    """Enter, `d` or a second click on a cell."""

    row_key: str


class CursorMoved(HeatmapMessage, namespace="heatmap"):
    """Another cell is under the cursor; `row_key` is None when there is none. Only the last one waits."""

    def can_replace(self, message: Message) -> bool:
        return isinstance(message, CursorMoved) and message.heatmap is self.heatmap
