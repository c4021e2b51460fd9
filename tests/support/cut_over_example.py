"""Write the picture of a cut-over's page for the docs, from the record of the tutorial's cut-over.

``python -m tests.support.cut_over_example playground/clicks/record/record.json``
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from migrate.extensions.cutover.page import cut_over_page
from migrate.extensions.cutover.report import CutOverRecord
from tests.support.chromium import screenshot

IMAGE = Path(__file__).parents[2] / "docs/img/cut-over.png"
_SIZE = (1180, 1700)
_HOME = "/home/me/migration"
_PLAYGROUND = "/playground/"


def main(path: Path) -> None:
    """Show the record with the folder and the user of the tutorial."""
    text = path.read_text(encoding="utf-8")
    folder, _, _ = str(path.absolute()).partition(_PLAYGROUND)
    record = CutOverRecord.model_validate_json(text.replace(f"{folder}/", f"{_HOME}/"))
    runs = [run.model_copy(update={"user": "me", "host": "laptop"}) for run in record.runs]
    with tempfile.TemporaryDirectory() as directory:
        page = Path(directory) / "record.html"
        page.write_text(cut_over_page(record.model_copy(update={"runs": runs})), encoding="utf-8")
        screenshot(page, IMAGE, _SIZE)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
