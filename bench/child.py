"""The process of one contender: reads its order from stdin, leaves its result in a file."""

from __future__ import annotations

import importlib
import json
import sys
from pathlib import Path


def main() -> None:
    order = json.load(sys.stdin)
    module, name = order["call"].split(":")
    result = getattr(importlib.import_module(module), name)(order["params"])
    Path(order["out"]).write_text(json.dumps(result))


if __name__ == "__main__":
    main()
