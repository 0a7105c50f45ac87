"""What a server says during a login never reaches a message raw."""

from __future__ import annotations

from pathlib import Path

import paramiko
import pytest

from cockpit.hosts.keys import Login
from cockpit.hosts.ssh_target import SshTarget
from cockpit.models import FaultError
from cockpit.text import printable


class HostileServer:
    """Takes the key, then asks for another login method with a name that steers terminals."""

    parting_words = ""

    def auth_publickey(self, username: str, key: paramiko.PKey) -> list[str]:
        return ["keyboard-interactive", "\x1b]52;c;eA==\x07\npassword"]

    def auth_none(self, username: str) -> list[str]:
        return []

    def is_active(self) -> bool:
        return True

    def get_banner(self) -> bytes | None:
        return None


def test_the_methods_a_server_also_wants_are_printable(tmp_path: Path) -> None:
    path = tmp_path / "key"
    paramiko.ECDSAKey.generate().write_private_key_file(str(path))
    target = SshTarget("head", "head", "me", identity_files=(str(path),), identities_explicit=True)
    with pytest.raises(FaultError) as caught:
        Login(target).run(HostileServer())
    why = caught.value.fault.why
    assert "also wants keyboard-interactive, ␛]52;c;eA==␇␊password" in why
    assert printable(why) == why
