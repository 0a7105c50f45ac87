"""What colours look like to whom: WCAG contrast, and distances as people with other colour vision see them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

Rgb = Sequence[float]  # red, green, blue from 0 to 255
Matrix = tuple[tuple[float, float, float], ...]

# Machado, Oliveira, Fernandes 2009, severity 1.0; they work on linear light.
VISIONS: dict[str, Matrix] = {
    "normal": ((1.0, 0.0, 0.0), (0.0, 1.0, 0.0), (0.0, 0.0, 1.0)),
    "protan": ((0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998)),
    "deutan": ((0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881)),
    "tritan": ((1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900)),
}
# sRGB to XYZ under D65, and that white.
_XYZ: Matrix = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
_WHITE = (0.95047, 1.0, 1.08883)


def contrast(one: Rgb, other: Rgb) -> float:
    """The contrast ratio of WCAG 2, from 1 to 21."""
    high, low = sorted((_luminance(one), _luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def lab(colour: Rgb, vision: str = "normal") -> tuple[float, float, float]:
    """CIELAB of a colour as that vision sees it; the first is its lightness from 0 to 100."""
    seen = _times(VISIONS[vision], [_linear(part) for part in colour])
    x, y, z = (_root(part / white) for part, white in zip(_times(_XYZ, seen), _WHITE, strict=True))
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def distance(one: Rgb, other: Rgb, vision: str = "normal") -> float:
    """How different two colours look to that vision: CIE76."""
    pairs = zip(lab(one, vision), lab(other, vision), strict=True)
    return float(sum((a - b) ** 2 for a, b in pairs) ** 0.5)


def least_distance(colours: Iterable[Rgb], vision: str = "normal") -> float:
    """The distance of the two that look most alike."""
    return min(distance(one, other, vision) for one, other in combinations(list(colours), 2))


def _luminance(colour: Rgb) -> float:
    red, green, blue = (_linear(part) for part in colour)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _linear(part: float) -> float:
    share = part / 255
    return share / 12.92 if share <= 0.04045 else float(((share + 0.055) / 1.055) ** 2.4)


def _times(matrix: Matrix, colour: Sequence[float]) -> list[float]:
    # What lies outside of what a screen can show is shown as its edge.
    return [max(0.0, sum(a * b for a, b in zip(row, colour, strict=True))) for row in matrix]


def _root(share: float) -> float:
    return float(share ** (1 / 3)) if share > 216 / 24389 else (24389 / 27 * share + 16) / 116
