"""docker-compose.yml without Docker: its services as processes on loopback."""

import os
import re
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import yaml

from tests.e2e.processes import ROOT

_VARIABLE = re.compile(r"\$\$|\$\{(\w+)(:-|:\?)([^}]*)\}")


class Compose:
    """The file with the values of .env put in, and other addresses for the ones it names.

    addresses maps texts such as mysql:3306 to what stands in for them; data stands for /data.
    """

    def __init__(self, values: Mapping[str, str], addresses: Mapping[str, str], data: Path) -> None:
        text = (ROOT / "docker-compose.yml").read_text(encoding="utf-8")
        self._services = yaml.safe_load(substituted(text, values))["services"]
        self._configs = yaml.safe_load(text)["configs"]
        self._addresses = addresses
        self._data = data

    def environment(self, service: str) -> dict[str, str]:
        """Give what the container would see: the image's environment, and the file's."""
        image = {"MEMORY_DATA_DIR": "/data", "AGENT_DATA_DIR": "/data"}
        named = image | self._services[service]["environment"]
        # what compose puts in as nothing is an empty text, and only to our YAML reader a null
        own = {name: self._placed(str(value or ""), service) for name, value in named.items()}
        return _host_environment() | own

    def command(self, service: str) -> list[str]:
        command: list[str] = self._services[service]["command"]
        return _our_python(command)

    def migrates_first(self, service: str) -> str:
        """Name the service that must have ended well before this one starts."""
        (first,) = [
            name
            for name, needed in self._services[service]["depends_on"].items()
            if needed["condition"] == "service_completed_successfully"
        ]
        return str(first)

    def healthy(self, service: str) -> bool:
        """Run the health check once."""
        kind, *command = self._services[service]["healthcheck"]["test"]
        assert kind == "CMD"
        placed = [self._placed(word, service) for word in _our_python(command)]
        checked = subprocess.run(
            placed,
            cwd=ROOT,
            env=self.environment(service),
            capture_output=True,
            timeout=60,
            check=False,
        )
        return checked.returncode == 0

    def run(self, service: str, *command: str) -> "subprocess.CompletedProcess[str]":
        """Run a command to its end, as docker compose run does; by default the service's own."""
        return subprocess.run(
            _our_python(list(command)) or self.command(service),
            cwd=ROOT,
            env=self.environment(service),
            capture_output=True,
            text=True,
            timeout=120,
            check=False,
        )

    def up(self, service: str) -> "subprocess.Popen[bytes]":
        """Start it; it logs into the data folder."""
        with (self._data / f"{service}.log").open("ab") as log:
            return subprocess.Popen(
                self.command(service),
                cwd=ROOT,
                env=self.environment(service),
                stdout=log,
                stderr=log,
            )

    def config(self, name: str) -> str:
        return str(self._configs[name]["content"])

    def _placed(self, text: str, service: str) -> str:
        """Put our addresses and folders in: each container has a /data of its own."""
        for theirs, ours in self._addresses.items():
            text = text.replace(theirs, ours)
        return re.sub(r"^/data\b", str(self._data / service), text)


def substituted(text: str, values: Mapping[str, str]) -> str:
    """Put values in as compose does; raises KeyError for one that must be there and is not."""

    def value(found: re.Match[str]) -> str:
        if found[0] == "$$":
            return "$"
        name, operator, rest = found.groups()
        given = values.get(name, "")
        if operator == ":?" and not given:
            raise KeyError(name)
        return given or rest

    return _VARIABLE.sub(value, text)


def _our_python(command: list[str]) -> list[str]:
    return [sys.executable, *command[1:]] if command[:1] == ["python"] else command


def _host_environment() -> dict[str, str]:
    """Keep what a process needs to run here."""
    kept = ("PATH", "HOME", "TMPDIR", "LANG", "PYTHONPATH")
    return {name: value for name, value in os.environ.items() if name in kept}


def read_env(path: Path) -> dict[str, str]:
    """Give the values of a .env file."""
    lines = path.read_text(encoding="ascii").splitlines()
    pairs: list[Any] = [line.split("=", 1) for line in lines]
    return dict(pairs)
