"""A py-spy that came along, on demand only: in a private folder of this node until the look ends."""

import os
import shutil
import signal
import stat
import tempfile
import zlib

_PLACES = ("/tmp", "/var/tmp", "/dev/shm")  # noqa: S108 - a private folder is made in one of them
_MAX_BYTES = 64 * 2**20
_ENDS = (signal.SIGALRM, signal.SIGTERM, signal.SIGHUP)  # whoever handles them calls `remove`


class Shipped:
    """One program as a file that only this login can run; `remove` leaves nothing behind."""

    def __init__(self) -> None:
        self.folder = ""
        self.why = ""

    def unpack(self, packed: bytes) -> str:
        """The path of the program, or "" and `why`: nowhere to write, or nothing may be run there."""
        try:
            data = zlib.decompressobj().decompress(packed, _MAX_BYTES)
        except zlib.error as error:
            self.why = f"py-spy did not arrive whole: {error}"
            return ""
        places = [os.environ.get("TMPDIR", ""), *_PLACES]
        for place in [place for place in places if place.startswith("/")]:
            path = self._written(place, data)
            if path:
                return path
        return ""

    def _written(self, place: str, data: bytes) -> str:
        try:
            path = os.path.join(self._new_folder(place), "py-spy")
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, stat.S_IRWXU)
            if os.access(path, os.X_OK):  # no on a file system that is mounted noexec
                return path
            self.why = f"nothing may be run in {place}"
        except OSError as error:
            self.why = f"py-spy could not be written to {place}: {error.strerror or error}"
        self.remove()
        return ""

    def _new_folder(self, place: str) -> str:
        """A private folder, with no moment at which it is there and `remove` does not know of it."""
        held = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDS)
        try:
            self.folder = folder = tempfile.mkdtemp(prefix="cockpit-py-spy-", dir=place)
            return folder
        finally:
            signal.pthread_sigmask(signal.SIG_SETMASK, held)

    def remove(self) -> None:
        """Take it away again; a signal meanwhile may come in here once more."""
        if self.folder:
            shutil.rmtree(self.folder, ignore_errors=True)
        self.folder = ""
