"""The JavaScript client's types are those of the servers' OpenAPI documents, and an application's code has types."""

import re
from pathlib import Path

import pytest

from harness.node import SOURCE
from harness.schemas import DOCUMENTS
from harness.typescript import compiled, declared

# Both ways: what a server sends fits what the client reads, and nothing that the client reads is never sent.
_SAME = """
import type { Model, Problem, ProblemKind, Seat, SeatBatch, SignedModel } from "./shuffledp.js";
import type * as shuffler from "./shuffler.js";
import type * as analyzer from "./analyzer.js";

type Same<A, B> = [A] extends [B] ? ([B] extends [A] ? true : false) : false;
const same = <A, B>(_: Same<A, B>): void => undefined;

same<Seat, shuffler.Seat>(true);
same<SeatBatch, shuffler.SeatBatch>(true);
same<Seat[], shuffler.Seats["seats"]>(true);
same<Problem, shuffler.Problem>(true);
same<Problem, analyzer.Problem>(true);
same<SignedModel, analyzer.SignedModel>(true);
same<Model, analyzer.Model>(true);
type OurOwn = Exclude<shuffler.Problem["type"], `https:${string}`>;
same<`urn:shuffledp:problem:${Exclude<ProblemKind, "gateway-key">}`, OurOwn>(true);
same<{ new: boolean }, shuffler.Kept>(true);
"""

_USE = """
import { Client, Device, ShuffleDPError, fileOutbox, type Choice, type Outcome, type Outbox } from "./shuffledp.js";

export async function clicked(task: string, outbox: Outbox): Promise<number> {
  const client = await Client.open({ taskId: "", task, shuffler: "", token: "", outbox });
  try {
    const { reports, known } = await client.report(true, { name: "clicked" });
    await client.report([0.5, 0.5]);
    return known ? 0 : reports;
  } catch (error) {
    if (error instanceof ShuffleDPError && error.kind === "task-full") return 0;
    throw error;
  } finally {
    await client.close();
  }
}

export async function chosen(campaign: string): Promise<Outcome["status"]> {
  const asked = { campaignId: "", campaign, shuffler: "", analyzer: "", token: "", outbox: await fileOutbox("x") };
  const device = await Device.open(asked);
  const choice: Choice = await device.choose([0.5], [[1, 0]]);
  return (await device.reward(choice, true)).status;
}
"""

# What must not pass, each with the word that the compiler complains about.
_WRONG = {
    'import { Client } from "./shuffledp.js"; new Client();': "private",
    'import { Client } from "./shuffledp.js"; Client.open({ taskId: "", task: "", shuffler: "" });': "token",
    'import type { Outcome } from "./shuffledp.js"; export const x: Outcome["status"] = "sent";': '"sent"',
    'import { Client } from "./shuffledp.js"; export const f = (c: Client) => c.report(1, { seed: 1 });': "seed",
    'import type { Seat } from "./shuffledp.js"; import type * as s from "./shuffler.js";'
    " export const f = (seat: s.Seat): Seat & { who: string } => seat;": "who",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The client's types beside those of both servers."""
    made = tmp_path_factory.mktemp("types")
    (made / "shuffledp.d.ts").write_text((SOURCE / "shuffledp.d.ts").read_text("utf-8"), "utf-8")
    (made / "package.json").write_text('{"type": "module"}', "utf-8")
    for role, document in DOCUMENTS.items():
        (made / f"{role}.d.ts").write_text(declared(document), "utf-8")
    return made


def test_the_clients_types_are_the_servers(folder: Path) -> None:
    (folder / "same.ts").write_text(_SAME, "utf-8")
    (folder / "use.ts").write_text(_USE, "utf-8")
    assert compiled(folder, "same.ts", "use.ts") == ""


def test_what_does_not_fit_is_found(folder: Path) -> None:
    """A check that lets everything pass would be none: each of these has its own complaint."""
    names = [f"wrong{number}.ts" for number in range(len(_WRONG))]
    for name, text in zip(names, _WRONG, strict=True):
        (folder / name).write_text(text, "utf-8")
    # And a server whose seats say something else.
    other = (folder / "shuffler.d.ts").read_text("utf-8").replace('"lease_seconds"', '"lease"')
    (folder / "other").mkdir()
    for name in ("shuffledp.d.ts", "analyzer.d.ts", "package.json"):
        (folder / "other" / name).write_text((folder / name).read_text("utf-8"), "utf-8")
    (folder / "other" / "shuffler.d.ts").write_text(other, "utf-8")
    (folder / "other" / "same.ts").write_text(_SAME, "utf-8")
    # A complaint goes on in lines that are set in.
    said = re.split(r"\n(?=\S)", compiled(folder, *names, "other/same.ts"))
    for name, word in zip(names, _WRONG.values(), strict=True):
        assert any(line.startswith(name) and word in line for line in said), (name, said)
    assert sum(line.startswith("other/same.ts") for line in said) == 2, said
