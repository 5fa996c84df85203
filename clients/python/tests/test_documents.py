"""What the README and the example say: it is typed, and works."""

import os
import re
import subprocess
import sys
from datetime import datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest

from conftest import Crm, create_provider, wait_until
from scheduling_client import Client, types

PACKAGE = Path(__file__).parents[1]

# A type checker reports each comment, too, that suppresses nothing.
MISTAKES = """
from scheduling_client import Client, ProblemError, types

client = Client(url="", crm_id="", key="")
client.list_slot("yoga")  # type: ignore[attr-defined]
client.list_slots()  # type: ignore[call-arg]
client.list_slots("yoga", {"limmit": 1})  # type: ignore[arg-type]
client.create_user({"reference": "mara@crm", "username": "mara", "lastName": "Blum"})  # type: ignore[typeddict-item]
client.list_webhooks()[0]["uri"]  # type: ignore[typeddict-item]
client.update_customer("yoga", "ada", {"userName": None})  # type: ignore[typeddict-item]
client.iter_staff("yoga")  # type: ignore[attr-defined]
Client(url="", key="")  # type: ignore[call-arg]
cleared: types.CustomerChange = {"email": None}


def handle(error: ProblemError, slot: types.Slot) -> int:
    if error.code == "provider.not_fond":  # type: ignore[comparison-overlap]
        print(error)
    return slot["start"]  # type: ignore[return-value]
"""


@pytest.fixture(scope="module")
def programs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("programs")
    blocks = re.findall(
        r"^```python\n# (\S+)\n(.*?)^```$", (PACKAGE / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    assert len(blocks) > 5
    for name, code in blocks:
        (folder / name).write_text(code)
    (folder / "afternoon.py").write_text((PACKAGE / "examples" / "afternoon.py").read_text())
    (folder / "mistakes.py").write_text(MISTAKES)
    return folder


def test_a_type_checker_finds_mistakes_and_none_in_the_documents(programs: Path) -> None:
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--warn-unused-ignores", "."],
        cwd=programs,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (checked.stdout.splitlines()[-1][:25], checked.stderr) == ("Success: no issues found ", ""), checked.stdout


def test_the_readme_is_right(programs: Path, crm: Crm, scheduling: Client) -> None:
    create_provider(scheduling, "yoga@tour")
    day = (datetime.now(timezone.utc) + timedelta(days=2)).date().isoformat()
    timeslot: types.NewTimeslot = {
        "resourceReference": "room",
        "start": f"{day}T09:00Z",
        "end": f"{day}T11:00Z",
        "raster": 60,
        "defaultCapacity": 1,
        "defaultAcceptBookings": True,
        "state": "BOOKABLE",
    }
    scheduling.create_timeslots("yoga@tour", {"timeslots": [timeslot]})

    assert run(programs, crm, "book.py") == f"BOOKED {day}T09:00:00Z\n"
    assert run(programs, crm, "clear.py") == "None Ada Kundin\n"
    assert run(programs, crm, "with_asyncio.py") == f"{day}T10:00:00Z 1\n"
    assert run(programs, crm, "errors.py").startswith("404 provider.not_found: ")
    assert run(programs, crm, "pages.py") == f"{day}T09:00:00Z 1\n"
    created: types.ListEventsQuery = {"types": "participation.created", "providerRef": "yoga@tour"}
    wait_until(lambda: scheduling.list_events(created) != [])
    assert "participation.created booking-7@tour\n" in run(programs, crm, "feed.py")


def run(programs: Path, crm: Crm, program: str, **settings: Any) -> str:
    environment = {"SCHEDULING_URL": crm.url, "CRM": crm.crm_id, "KEY": crm.key, "PATH": os.environ["PATH"], **settings}
    completed = subprocess.run(
        [sys.executable, program],
        cwd=programs,
        env=environment,
        capture_output=True,
        text=True,
        timeout=90,
        check=False,
    )
    assert (completed.returncode, completed.stderr) == (0, "")
    return completed.stdout
