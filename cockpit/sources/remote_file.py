"""Reading a file on a machine that only `sh` and coreutils are expected on, a piece at a time.

Nothing runs there between two reads, so nothing can be left behind, and a file system that hangs costs one read
its deadline. Only ordinary files are ever opened: a FIFO would block, a device may do anything.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from cockpit.hosts.base import Host
from cockpit.models import Fault, FaultError, FaultKind
from cockpit.text import printable

PIECE = 256 * 1024
READ_DEADLINE_S = 10.0
ALIVE_DEADLINE_S = 4.0
SEARCH_DEADLINE_S = 20.0
STAMPS_DEADLINE_S = 4.0  # whoever asks for many files must not wait long for one that hangs
_HEADER_MOST = 4096

# Words: path, first byte to read or `end`, how many bytes. One line of facts, then the bytes themselves.
_READ = """
f=$1 from=$2 most=$3
LC_ALL=C; export LC_ALL
if [ -d "$f" ]; then echo kind=directory; exit; fi
if [ ! -f "$f" ]; then
  if [ -e "$f" ]; then echo kind=special; exit; fi
  case $(ls -ld -- "$f" 2>&1) in
    *denied*) echo kind=denied ;;
    *) echo kind=none ;;
  esac
  exit
fi
if ! ( : <"$f" ) 2>/dev/null; then echo kind=denied; exit; fi
s=$(stat -L -c '%d:%i %s %Y' -- "$f" 2>/dev/null || stat -L -f '%d:%i %z %m' -- "$f" 2>/dev/null)
set -- $s
[ $# = 3 ] || { echo kind=none; exit; }
if [ "$from" = end ]; then from=$(($2 - most)); [ "$from" -ge 0 ] || from=0; fi
echo "kind=file id=$1 size=$2 mtime=$3 start=$from now=$(date +%s)"
tail -c +$((from + 1)) -- "$f" | head -c "$most"
"""

# Words: paths. A line for each, whatever its name.
STAMPS = 'for f do stat -L -c %Y -- "$f" 2>/dev/null || echo -; done'

# Words: path, first byte, how many bytes, and on stdin the texts. The place of the first line with one of them.
_SEARCH = """
f=$1 from=$2 most=$3
LC_ALL=C; export LC_ALL
[ -f "$f" ] || exit 3
p=$(cat)
tail -c +$((from + 1)) -- "$f" | head -c "$most" | grep -a -b -m 1 -F -e "$p" | head -c 20
"""


@dataclass(frozen=True, slots=True)
class Piece:
    """One read. `kind`: file, none (not there), denied, directory or special (FIFO, socket, device).

    `id` changes when another file takes the name; `mtime` and `now` are on that machine's clock.
    """

    kind: str
    id: str = ""
    size: int = 0
    mtime: int = 0
    now: int = 0
    start: int = 0
    data: bytes = b""


def read_piece(host: Host, path: str, start: int | None, most: int = PIECE) -> Piece:
    """Up to `most` bytes from the place `start`, or the last ones when that is None.

    Waits up to READ_DEADLINE_S. Raises FaultError; when the machine answers and the read does not, it says so.
    """
    argv = ["sh", "-s", path, "end" if start is None else str(start), str(most)]
    try:
        # stdin is the script: no login shell has to quote it.
        done = host.run(argv, deadline_s=READ_DEADLINE_S, stdin=_READ.encode(), max_bytes=most + _HEADER_MOST)
    except FaultError as error:
        if error.fault.kind is FaultKind.TIMEOUT and _answers(host):
            raise FaultError(_hung(path, host)) from error
        raise
    header, _, data = done.stdout.partition(b"\n")
    facts = dict(word.split("=", 1) for word in header.decode("ascii", "replace").split() if "=" in word)
    kind = facts.get("kind", "")
    if kind != "file":
        if not kind:
            raise FaultError(_garbled(path, host, done.stderr or done.stdout))
        return Piece(kind)
    try:
        size, mtime, first, now = (int(facts[name]) for name in ("size", "mtime", "start", "now"))
    except (KeyError, ValueError):
        raise FaultError(_garbled(path, host, header)) from None
    return Piece("file", facts.get("id", ""), max(size, first + len(data)), mtime, now, first, data)


def find_text(host: Host, path: str, texts: Sequence[str], start: int, most: int) -> int | None:
    """Where, from the place `start` on, the first line begins that holds one of the texts; None: in no line.

    Looks at `most` bytes, which takes at most SEARCH_DEADLINE_S. Raises FaultError.
    """
    argv = ["sh", "-c", _SEARCH, "sh", path, str(start), str(most)]
    done = host.run(argv, deadline_s=SEARCH_DEADLINE_S, stdin="\n".join(texts).encode(), max_bytes=_HEADER_MOST)
    place = done.stdout.partition(b":")[0]
    return start + int(place) if place.isdigit() else None


def stamps_of(host: Host, paths: Iterable[str]) -> dict[str, int]:
    """Path -> when it was last written, in epoch seconds on that machine's clock; files that are not there have none.

    Raises FaultError.
    """
    asked = list(dict.fromkeys(paths))
    if not asked:
        return {}
    told = host.run(["sh", "-c", STAMPS, "sh", *asked], deadline_s=STAMPS_DEADLINE_S).stdout.decode(errors="replace")
    return {path: int(stamp) for path, stamp in zip(asked, told.split(), strict=False) if stamp.isdigit()}


def _answers(host: Host) -> bool:
    try:
        return host.run(["true"], deadline_s=ALIVE_DEADLINE_S).rc == 0
    except FaultError:
        return False


def _hung(path: str, host: Host) -> Fault:
    why = f"{host.name} answers, but this file does not within {READ_DEADLINE_S:g} s: its file system hangs"
    return Fault(FaultKind.TIMEOUT, f"reading {printable(path)}", why, "look at the mounts of that machine")


def _garbled(path: str, host: Host, said: bytes) -> Fault:
    words = printable(said[:200].strip()) or "no answer at all"
    return Fault(FaultKind.GARBLED, f"reading {printable(path)} on {host.name}", words)
