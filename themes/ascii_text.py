"""Our own signs in ASCII, cell for cell, for text that is about to be drawn or printed.

What the widgets draw through `signs(app)` is ASCII already; this is for all the rest: separators, ellipses,
frames of Textual's, degrees. A text keeps its width, whatever is replaced.
"""

from __future__ import annotations

from functools import lru_cache

from themes.glyphs import ASCII, UNICODE

_BOXES = {
    "-": "─━═╌╍┄┅┈┉╴╶╸╺▔▁",
    "|": "│┃║╎╏┆┇┊┋╵╷╹╻▏▕▎▊▍┤├┨┠┫┣╢╟╣╠",
    "+": "┌┍┎┏┐┑┒┓└┕┖┗┘┙┚┛┬┭┮┯┰┱┲┳┴┵┶┷┸┹┺┻┼╋╔╗╚╝╦╩╬╭╮╯╰▖▗▘▙▚▛▜▝▞▟",
    "#": "▋▉▐■▓▒░▀",
}
_WORDS = {"·": "-", "•": "*", "–": "-", "—": "-", "…": "~", "×": "x", "→": ">", "←": "<", "↑": "^", "↓": "v",
          "⇒": ">", "›": ">", "‹": "<", "°": "C", "µ": "u", "±": "~", "≤": "<", "≥": ">", "✓": "*", "✗": "x",
          "’": "'", "‘": "'", "“": '"', "”": '"', "\u00a0": " ", "\ufffd": "?", "␡": "?"}  # fmt: skip


def _table() -> dict[int, str]:
    table = {ord(sign): stand_in for stand_in, signs in _BOXES.items() for sign in signs}
    table |= {0x2400 + code: "?" for code in range(0x20)}  # what stands for a control character
    table |= {ord(sign): stand_in for sign, stand_in in _WORDS.items()}
    table |= {ord(sign): ASCII.ramp[place] for place, sign in enumerate(UNICODE.ramp)}
    for name in ("left", "right", "rule", "mark", "thumb", "cut", "dot"):  # arrows of the order are drawn by `signs`
        table[ord(getattr(UNICODE, name))] = getattr(ASCII, name)
    return table | {ord(sign): ASCII.states[health] for health, sign in UNICODE.states.items()}


_TABLE = _table()


@lru_cache(4096)
def ascii_text(text: str, encoding: str = "utf-8") -> str:
    """The text with every sign of ours in ASCII; characters that `encoding` has not are a `?` for each of their cells.

    What comes from outside stays as it is where the encoding has it.
    """
    if text.isascii():
        return text
    text = text.replace(" …", "..").replace("°C", " C").translate(_TABLE)
    return text if _has(encoding, text) else "".join(_encodable(sign, encoding) for sign in text)


def _has(encoding: str, text: str) -> bool:
    try:
        text.encode(encoding)
    except UnicodeEncodeError:
        return False
    except LookupError:
        return text.isascii()
    return True


def _encodable(sign: str, encoding: str) -> str:
    from rich.cells import cell_len

    return sign if _has(encoding, sign) else "?" * cell_len(sign)
