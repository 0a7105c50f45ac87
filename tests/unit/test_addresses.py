"""What may be written for a machine: the same check for the config and for connections."""

from __future__ import annotations

import pytest

from cockpit.addresses import Written, refuse_odd_name, take_apart


def test_the_parts_of_an_address() -> None:
    assert take_apart("me@corp@head:2222") == Written("head", "me@corp", 2222)
    assert take_apart("[fe80::1]:22") == Written("fe80::1", None, 22)
    assert take_apart("local") == Written("local")


@pytest.mark.parametrize("text", ["", "a@-oX=y", "x]y", "a b", "h:0", "h:65536", "h:" + "9" * 5000, "h:٢٢", "`id`"])
def test_what_could_be_an_option_or_a_command_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"^(is|has|begins)"):
        take_apart(text)


def test_names() -> None:
    refuse_odd_name("ip-10-0-0-1.ec2.internal")
    with pytest.raises(ValueError, match="dash"):
        refuse_odd_name("-lroot")
