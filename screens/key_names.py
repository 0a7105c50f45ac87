"""Names of keys: as Textual calls them, as a person writes them, and which of them a terminal can tell apart."""

from __future__ import annotations

import unicodedata

_SHOWN = {
    "slash": "/", "question_mark": "?", "exclamation_mark": "!", "less_than_sign": "<", "greater_than_sign": ">",
    "asterisk": "*", "colon": ":", "semicolon": ";", "comma": ",", "full_stop": ".", "minus": "-", "plus": "+",
    "equals_sign": "=", "underscore": "_", "number_sign": "#", "dollar_sign": "$", "percent_sign": "%", "at": "@",
    "ampersand": "&", "apostrophe": "'", "quotation_mark": '"', "backslash": "\\", "vertical_line": "|", "tilde": "~",
    "left_parenthesis": "(", "right_parenthesis": ")", "left_square_bracket": "[", "right_square_bracket": "]",
    "left_curly_bracket": "{", "right_curly_bracket": "}", "circumflex_accent": "^", "grave_accent": "`",
    "escape": "esc", "pagedown": "pgdn", "pageup": "pgup", "down": "↓", "up": "↑", "left": "←", "right": "→",
}  # fmt: skip
_WRITTEN = {shown: name for name, shown in _SHOWN.items()} | {"return": "enter", "del": "delete", "ins": "insert"}
_NAMED = frozenset(
    {
        "enter", "escape", "tab", "space", "up", "down", "left", "right", "home", "end", "pageup", "pagedown",
        "insert", "delete", "backspace",
    }
)  # fmt: skip
_FUNCTION = frozenset(f"f{number}" for number in range(1, 13))
_SAME_BYTE = {
    "ctrl+i": "tab", "ctrl+m": "enter", "ctrl+j": "enter", "ctrl+h": "backspace", "ctrl+left_square_bracket": "escape",
}  # fmt: skip
_SHIFTED = frozenset(["tab", "up", "down", "left", "right", "home", "end", "pageup", "pagedown"])


class KeyNameError(ValueError):
    """A key that cannot be used; str() says why."""


def shown_keys(keys: str, most: int = 9) -> str:
    """Keys as a person writes them: `j ↓`."""
    return " ".join(_shown(key) for key in keys.split(",")[:most])


def _shown(key: str) -> str:
    modifier, plus, last = key.rpartition("+")
    return f"{modifier}{plus}{_SHOWN.get(last, last)}"


def is_printable(key: str) -> bool:
    """True for a key that types something: in a line of text it is text."""
    return "+" not in key and key not in _NAMED and key not in _FUNCTION


def read_keys(text: str) -> tuple[str, ...]:
    """`f, ctrl+r` or `?` as Textual's names. Raises KeyNameError for a key that does not exist or does not arrive."""
    words = [text] if text.strip() == "," else text.split(",")
    return tuple(dict.fromkeys(_read_key(word.strip()) for word in words))


def _read_key(word: str) -> str:
    if not word:
        raise KeyNameError("needs a key; a comma as a key is written `comma`")
    if any(char.isspace() for char in word):
        raise KeyNameError(f"`{word}`: one key, not several after each other")
    *modifiers, last = word.split("+") if word != "+" and not word.endswith("++") else (*word[:-1].split("+")[:-1], "+")
    if not last:
        raise KeyNameError(f"`{word}` names no key after the `+`")
    return _with_modifiers([modifier.lower() for modifier in modifiers], last, word)


def _with_modifiers(modifiers: list[str], last: str, word: str) -> str:
    if not modifiers:
        return _plain(last)
    _refuse_modifiers(modifiers, word)
    name = last.lower() if len(last) == 1 and last.isalpha() else _plain(last)
    if modifiers == ["shift"]:
        if name not in _SHIFTED:
            raise KeyNameError(f"`{word}`: a letter with shift is written as the capital itself")
        return f"shift+{name}"
    key = f"ctrl+{name}"
    if key in _SAME_BYTE:
        raise KeyNameError(f"`{word}` is the same as {_SAME_BYTE[key]} to a terminal")
    if not (name.isascii() and name.isalpha() and len(name) == 1) and name not in _SHIFTED - {"tab"}:
        raise KeyNameError(f"`{word}`: terminals send ctrl only with a letter or a cursor key")
    return key


def _refuse_modifiers(modifiers: list[str], word: str) -> None:
    if unknown := [modifier for modifier in modifiers if modifier not in ("ctrl", "shift")]:
        if unknown[0] in ("alt", "meta", "option"):
            raise KeyNameError(f"`{word}`: alt does not arrive through tmux and on macOS")
        if unknown[0] in ("super", "cmd", "command", "hyper", "win"):
            raise KeyNameError(f"`{word}`: the window system keeps {unknown[0]} for itself")
        raise KeyNameError(f"`{word}`: `{unknown[0]}` is neither ctrl nor shift")
    if sorted(modifiers) == ["ctrl", "shift"]:
        raise KeyNameError(f"`{word}`: most terminals cannot tell ctrl+shift from ctrl")
    if len(modifiers) > 1:
        raise KeyNameError(f"`{word}` names a modifier twice")


def _plain(word: str) -> str:
    if len(word) == 1:
        return _character(word)
    name = _WRITTEN.get(word.lower(), word.lower())
    if name in _NAMED or name in _FUNCTION or name in _SHOWN:
        return name
    raise KeyNameError(f"there is no key `{word}`")


def _character(char: str) -> str:
    """Textual's name of the key that types a character."""
    if char in _WRITTEN:
        return _WRITTEN[char]
    if char.isalnum():
        return char
    if not char.isprintable():
        raise KeyNameError("a control character is no key; ctrl keys are written `ctrl+x`")
    return unicodedata.name(char, char).lower().replace("-", "_").replace(" ", "_")
