"""The config reader: what it takes, and the one line it gives for every mistake."""

from __future__ import annotations

from pathlib import Path

import pytest

from cockpit.config import ConfigError, KeySetting, NodeAccess, PrometheusSettings, Refresh
from cockpit.config_file import load_config

FULL = """\
default: prod
clusters:
  prod:
    kind: parallelcluster
    head: ec2-user@head.prod
    ssh_config: ~/.ssh/config
    nodes: {via: head, user: ec2-user, port: 22, max: 256}
    region: us-east-1
    profile: ops
    stack: prod
    instances: {"tag:Cluster": prod}
    production: true
    read_only: false
    refresh: {slurm: 5, gpus: 2, aws: 30, storage: 60}
    prometheus: http://prom:9090
  lab:
    head: local
rules: {gpu_hot_c: 80, gpu_idle_pct: 60, gpu_idle_for: 5m, straggler_pct: 20, nccl_min_pct: 90}
"""


def write(tmp_path: Path, text: str) -> Path:
    path = tmp_path / "config.yaml"
    path.write_text(text)
    return path


def test_every_key_of_the_design_is_read(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, FULL))
    prod = config.clusters["prod"]
    assert config.default == "prod"
    assert (prod.kind, prod.head, prod.region, prod.production) == (
        "parallelcluster",
        "ec2-user@head.prod",
        "us-east-1",
        True,
    )
    assert prod.ssh_config == Path("~/.ssh/config").expanduser()
    assert prod.nodes == NodeAccess("head", "ec2-user", 22, 256)
    assert prod.refresh == Refresh(5, 2, 30, 60)
    assert prod.instances == {"tag:Cluster": "prod"}
    assert (config.rules.gpu_hot_c, config.rules.gpu_idle_for_s) == (80.0, 300.0)
    assert config.clusters["lab"].kind is None


def test_a_single_cluster_is_the_default(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, "clusters:\n  one:\n    head: local\n")).default == "one"


def test_keys_are_kept_with_their_place(tmp_path: Path) -> None:
    path = write(tmp_path, FULL + "keys:\n  app.refresh: f,ctrl+r\n  any.thing: '?'\nredact_screenshots: yes\n")
    config = load_config(path)
    line = len(FULL.splitlines()) + 2
    assert dict(config.keys) == {
        "app.refresh": KeySetting("f,ctrl+r", f"{path}:{line}"),
        "any.thing": KeySetting("?", f"{path}:{line + 1}"),
    }
    assert str(config.keys["any.thing"].error("any.thing", "no \x1b")) == f"{path}:{line + 1}: keys.any.thing: no ␛"
    assert config.redact_screenshots


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (
            "clusters:\n  a:\n    heat: local\n",
            3,
            "clusters.a.heat: is not a known key; did you mean `head`?",
        ),
        ("clusters:\n  a:\n    kind: pbs\n", 3, "clusters.a.kind: must be one of"),
        ("clusters:\n  a:\n    refresh: {slurm: fast}\n", 3, "clusters.a.refresh.slurm: must be a number"),
        ("clusters:\n  a:\n    refresh: {slurm: 0}\n", 3, "must lie between 1 and 3600"),
        ("clusters:\n  a:\n    nodes: {port: 22.5}\n", 3, "clusters.a.nodes.port: must be a whole number"),
        ("clusters:\n  a:\n    read_only: maybe\n", 3, "must be true or false"),
        (
            "clusters:\n  a:\n    nodes:\n      via: direct\n      host_keys: head\n",
            5,
            "clusters.a.nodes.host_keys: `head` needs `via: head`",
        ),
        ("clusters:\n  a:\n    head: local\n    head: other\n", 4, "clusters.a.head: stands twice"),
        ("clusters:\n  a:\n    head: -oProxyCommand=x\n", 3, "must be `local`"),
        ("clusters:\n  a: local\n", 2, "must be a block of `key: value` lines"),
        ("clusters: {}\n", 1, "clusters: needs at least one entry"),
        ("rules: {gpu_idle_for: soon}\nclusters: {a: {head: local}}\n", 1, "must be a duration such as"),
        ("default: b\nclusters: {a: {head: local}}\n", 1, "no cluster named 'b'"),
        ("clusters: {a: {head: local}}\ndefault: b\n", 2, "default: no cluster named 'b'"),
        ("rules: {}\nclusters: {}\n", 2, "clusters: needs at least one entry"),
        ("clusters:\n  a:\n    heat:\n      local\n", 3, "clusters.a.heat: is not a known key"),
        ("clusters:\n  a:\n    heat:\n      - x\n      - y\n", 3, "clusters.a.heat: is not a known key"),
        ("clusters:\n  a:\n    head: null\n", 3, "clusters.a.head: needs one value"),
        ("clusters:\n  a:\n    region: ~\n", 3, "clusters.a.region: needs one value"),
        ("clusters:\n  a:\n    instances: {tag: Null}\n", 3, "clusters.a.instances.tag: needs one value"),
        ("clusters:\n  ~: {head: local}\n", 2, "clusters: a key must be one word"),
        ("clusters:\n  a:\n    head: x]y\n", 3, "clusters.a.head: must be `local`"),
        ("clusters:\n  a:\n    head: foo@-oProxyCommand=x\n", 3, "begins with a dash"),
        ("clusters:\n  a:\n    head: me@head:99999\n", 3, "has a port outside 1 to 65535"),
        ("clusters:\n  a:\n    head: me@head:" + "9" * 5000 + "\n", 3, "has a port outside 1 to 65535"),
        ("clusters: [\n", 2, "not valid YAML"),
        ("clusters:\n  a:\n    prometheus: prom:9090\n", 3, "must be an http://"),
        ("clusters:\n  a:\n    prometheus: {select: 'a=\"b\"'}\n", 3, "needs `url`"),
    ],
)
def test_a_mistake_is_one_line_with_file_line_and_key(tmp_path: Path, text: str, line: int, words: str) -> None:
    path = write(tmp_path, text)
    with pytest.raises(ConfigError) as caught:
        load_config(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{line}: ")
    assert words in message
    assert "\n" not in message


def test_no_file_no_text_and_no_utf8(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load_config(tmp_path / "nowhere.yaml")
    with pytest.raises(ConfigError, match="is empty"):
        load_config(write(tmp_path, ""))
    (tmp_path / "config.yaml").write_bytes(b"\xff\xfe\xfa")
    with pytest.raises(ConfigError, match="not UTF-8"):
        load_config(tmp_path / "config.yaml")


def test_control_characters_are_a_mistake_too(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(write(tmp_path, "clusters:\n  a:\n    head: 'x\x1b'\n"))
    assert "\n" not in str(caught.value)
    assert "\x1b" not in str(caught.value)


def test_a_quoted_null_is_a_text(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, "clusters:\n  a:\n    head: local\n    region: 'null'\n"))
    assert config.clusters["a"].region == "null"


@pytest.mark.parametrize("text", ["[" * 3000, "clusters: " + "{a: " * 3000, "[" * 3000 + "]" * 3000])
def test_deep_nesting_is_a_mistake_and_no_traceback(tmp_path: Path, text: str) -> None:
    with pytest.raises(ConfigError, match="nested too deeply"):
        load_config(write(tmp_path, text))


def test_a_config_error_is_one_harmless_line_whatever_it_quotes(tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as caught:
        load_config(tmp_path / "a\x1b]0;owned\x07\nb.yaml")
    assert "a␛]0;owned␇␊b.yaml: cannot be read" in str(caught.value)
    assert str(ConfigError("x\x1by")) == "x␛y"


@pytest.mark.parametrize("head", ["local", "head", "ec2-user@10.0.0.1:2222", "ssh://me@head:22", "[fe80::1%eth0]:22"])
def test_every_written_form_of_a_head_is_taken(tmp_path: Path, head: str) -> None:
    config = load_config(write(tmp_path, f"clusters:\n  a:\n    head: '{head}'\n"))
    assert config.clusters["a"].head == head


def test_a_prometheus_by_its_address_alone_or_with_labels(tmp_path: Path) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(
        "clusters:\n  a:\n    prometheus: http://prom:9090\n"
        "  b:\n    prometheus: {url: 'https://p', node_labels: [node, instance], select: 'cluster=\"b\"'}\n"
    )
    found = load_config(path).clusters
    assert found["a"].prometheus == PrometheusSettings("http://prom:9090")
    assert found["b"].prometheus == PrometheusSettings("https://p", ("node", "instance"), 'cluster="b"')


def test_a_prometheus_with_a_way_and_a_login(tmp_path: Path) -> None:
    text = "{url: 'https://p', via: head, ca_file: /ca.pem, user: ops, password_env: PROM}"
    found = load_config(write(tmp_path, f"clusters:\n  a:\n    prometheus: {text}\n")).clusters["a"].prometheus
    assert found == PrometheusSettings(
        "https://p", via="head", ca_file=Path("/ca.pem"), user="ops", password_env="PROM"
    )
    assert found.has_login


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("http://ops:hunter2@p", "no login in the address"),
        ("{url: 'http://ops:hunter2@p:9090'}", "no login in the address"),
        ("{url: 'http://p', password: hunter2}", "is not a known key"),
        ("{url: 'http://p', token: hunter2}", "is not a known key"),
        ("{url: 'http://p', user: ops}", "need each other"),
        ("{url: 'http://p', password_env: P}", "need each other"),
        ("{url: 'http://p', token_env: P, token_file: /t}", "not both"),
        ("{url: 'http://p', token_env: P, user: ops, password_env: P}", "not both"),
        ("{url: 'http://p', ca_file: /t}", "only for https"),
        ("{url: 'http://p:x'}", "is no address"),
        ("{url: 'http://'}", "names no host"),
    ],
)
def test_a_login_of_prometheus_is_named_and_never_written_there(tmp_path: Path, text: str, told: str) -> None:
    with pytest.raises(ConfigError) as error:
        load_config(write(tmp_path, f"clusters:\n  a:\n    prometheus: {text}\n"))
    assert told in str(error.value)
    assert "hunter2" not in str(error.value)
