"""What the commands of the command line do."""

import argparse
import json
import sys
from dataclasses import asdict
from pathlib import Path

from gateway.keys import KeysUnreadable, create_key, read_keys, revoke_key
from gateway.serving import serve_until_signal
from gateway.settings import GatewaySettings
from rpc import loop
from rpc.ids import utc_now
from rpc.knobs import BAD_SETTINGS, show
from rpc.lines import DONE, FAILED, complain, tell
from rpc.telemetry import configure_logging

PROGRAM = "gateway"


def run(options: argparse.Namespace, settings: GatewaySettings) -> int:
    """Run a command and give its exit code; what went wrong is one line on stderr."""
    try:
        match options.command:
            case "serve":
                return _serve(settings)
            case "keys":
                return _keys(options, settings)
            case _:
                show(settings, as_json=options.json)
                return DONE
    except (ValueError, KeysUnreadable) as error:  # BadListen and UnsafeListen are ValueErrors
        complain(PROGRAM, str(error))
        return BAD_SETTINGS
    except OSError as error:
        complain(PROGRAM, str(error))
        return FAILED


def _serve(settings: GatewaySettings) -> int:
    configure_logging("gateway", settings.log_level, settings.log_json)
    # with port 0 nobody knows the address otherwise
    loop.run(serve_until_signal(settings, lambda address: tell(f"listening on {address}")))
    return DONE


def _keys(options: argparse.Namespace, settings: GatewaySettings) -> int:
    path = options.file or settings.api_keys_file
    if path is None:
        complain(PROGRAM, "there is no file of API keys: set GATEWAY_API_KEYS_FILE, or give --file")
        return BAD_SETTINGS
    if options.action == "create":
        key, secret = create_key(path, options.user, options.name, utc_now())
        sys.stderr.write(f"key {key.key_id} of {key.user_id}; it is shown this once:\n")
        tell(secret)
        return DONE
    if options.action == "revoke":
        if revoke_key(path, options.key_id, utc_now()):
            return DONE
        complain(PROGRAM, f"{path} holds no valid key {options.key_id}")
        return FAILED
    return _list(path, as_json=options.json)


def _list(path: Path, *, as_json: bool) -> int:
    keys = [
        {name: value for name, value in asdict(key).items() if name != "sha256"}
        for key in read_keys(path)
    ]
    if as_json:
        tell(json.dumps(keys, indent=2, ensure_ascii=False))
        return DONE
    for key in keys:
        state = f"revoked {key['revoke_time']}" if key["revoke_time"] else "valid"
        tell("\t".join((key["key_id"], key["user_id"], key["create_time"], state, key["name"])))
    return DONE
