"""`python -m cockpit.demo.aws_server FD`: a simulated AWS behind a listening socket, with the demo's cluster in it.

A process of its own: moto takes a second to load, which the screen must not wait for. Every tick it tells the demo
the fleet's status in a line of JSON, and is answered with the instances that shall be there and the next status.
It ends when its standard input does.
"""

from __future__ import annotations

import copy
import json
import sys
import time
from collections.abc import Mapping
from typing import IO, Any

from cockpit.demo.account import REGION, Account

TICK_S = 0.5
CLUSTER = "demo"
EFA_INTERFACES = 32  # of a p5.48xlarge


def _exchange(demo: IO[str], status: str) -> Mapping[str, Any] | None:
    """One line to the demo and its answer; None when it is gone."""
    try:
        demo.write(json.dumps({"status": status}) + "\n")
        demo.flush()
        line = sys.stdin.readline()
    except OSError:
        return None
    answer: Mapping[str, Any] | None = json.loads(line) if line else None
    return answer


def _match(account: Account, wanted: Mapping[str, str]) -> None:
    """End and launch instances until those of `wanted` are there."""
    for node in [name for name in account.nodes if name not in wanted]:
        account.terminate(node)
        del account.nodes[node]
    for node, address in wanted.items():
        if node not in account.nodes:
            account.add_node(node, address)
            _give_efa(account.nodes[node])


def _give_efa(instance: str) -> None:
    """Give an instance all the EFA interfaces of its type, which moto's own API cannot be asked for."""
    from moto.backends import get_backend

    for account in get_backend("ec2").values():
        for found in account[REGION].all_instances():
            if found.id == instance:
                found.nics[0].interface_type = "efa"
                for card in range(1, EFA_INTERFACES):
                    other = found.nics[card] = copy.copy(found.nics[0])
                    other.id, other.device_index, other.interface_type = f"{other.id[:-2]}{card:02x}", 1, "efa-only"


def _let_efa_through(account: Account) -> None:
    """The rules that EFA needs: all traffic from the instances' group itself, and to it."""
    ec2 = account.client("ec2")
    for group in ec2.describe_security_groups(GroupNames=["default"])["SecurityGroups"]:
        rule = [{"IpProtocol": "-1", "UserIdGroupPairs": [{"GroupId": group["GroupId"]}]}]
        ec2.authorize_security_group_ingress(GroupId=group["GroupId"], IpPermissions=rule)
        ec2.authorize_security_group_egress(GroupId=group["GroupId"], IpPermissions=rule)


def _daemon(account: Account, demo: IO[str]) -> None:
    """Follow the item until the demo ends."""
    status = account.status
    while (answer := _exchange(demo, status)) is not None:
        _match(account, answer["instances"])
        if answer["status"] != status and account.status == status:  # nobody ordered anything meanwhile
            account.set_fleet(answer["status"])
        time.sleep(TICK_S)
        status = account.status


def main(argv: list[str]) -> int:
    """Build the account behind a port of its own, then let the demo's socket answer."""
    import logging
    import threading

    from moto.moto_server.werkzeug_app import DomainDispatcherApplication, create_backend_app
    from moto.server import ThreadedMotoServer
    from werkzeug.serving import make_server

    demo, sys.stdout = sys.stdout, sys.stderr  # moto prints what it does not know
    logging.getLogger("werkzeug").setLevel(logging.CRITICAL)
    inner = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
    inner.start()
    host, port = inner.get_host_and_port()
    account = Account(f"http://{host}:{port}", CLUSTER)
    account.build([])
    _let_efa_through(account)
    answer = _exchange(demo, account.status)
    if answer is None:
        return 0
    _match(account, answer["instances"])
    app = DomainDispatcherApplication(create_backend_app)
    outer = make_server("127.0.0.1", 0, app, threaded=True, fd=int(argv[0]))
    threading.Thread(target=outer.serve_forever, daemon=True).start()
    _daemon(account, demo)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
