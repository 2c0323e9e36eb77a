"""Wrong twins of the JavaScript client: small changes that would break a promise, each of which its tests refuse."""

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from harness.node import Node, node_in


@dataclass(frozen=True)
class Twin:
    """A change to one file, with why it is wrong and which tests must fail."""

    why: str
    file: str
    old: str
    new: str
    tests: str


TWINS = {
    "token-with-every-request": Twin(
        "A report carries its person's token: whoever keeps both knows whose bytes they are.",
        "internal/calls.js",
        r"if (!/\/seats(\?|$)/.test(path)) return {};",
        "",
        "tokens",
    ),
    "noise-again-for-any-refusal": Twin(
        "Whoever answers 404 gets the same value with new noise, as often as it likes.",
        "internal/reporting.js",
        "if (!NEVER_KEPT.has(refused.kind)) throw refused;",
        'refused.kind = "seat-gone";',
        "outbox",
    ),
    "sent-but-not-kept": Twin(
        "What a page that is closed had sent is not known afterwards, and is reported again.",
        "internal/reporting.js",
        "if (!(await this.#outbox.add(entry))) return { reports: 0, new: 0, known: true };",
        "",
        "outbox",
    ),
    "any-seat": Twin(
        "A shuffler puts a person into a batch of one, or of so many that nobody adds noise.",
        "internal/task.js",
        "insist(same, `${words}: it serves another task under this id, or is not to be trusted.`);",
        "if (!same) return { id: seat.seat, batches };",
        "refusals",
    ),
    "any-text": Twin(
        "Whoever serves the text chooses the key and the noise.",
        "internal/task.js",
        "if ((await idOf(text)) !== id) refuse(`text must have the SHA-256 that ${what}Id says`);",
        "",
        "refusals",
    ),
    "messages-in-order": Twin(
        "The first message of every report is the value.",
        "internal/sealing.js",
        "return randomOrder(bits, total).map((place) => rows[place]);",
        "return rows;",
        "vectors",
    ),
    "hops-in-another-order": Twin(
        "The last hop's layer is outermost: the first hop cannot take its own off.",
        "internal/sealing.js",
        "const hop = layer && keys.length - layer;",
        "const hop = layer;",
        "vectors",
    ),
    "first-digits-only": Twin(
        "Coins have a probability of 16 digits, and noise is less than was proved.",
        "internal/bits.js",
        "while (tied.length && rest) {",
        "while (false) {",
        "vectors",
    ),
    "a-relay-acknowledges": Twin(
        "What a relay says in the clear counts as the shuffler's answer.",
        "internal/relay.js",
        'if (response.status !== 200 || media !== ANSWER) throw new RangeError("no relay answers so");',
        "if (media !== ANSWER) return new Response(content, { status: response.status });",
        "relay",
    ),
    "a-relay-says-seat-gone": Twin(
        "A relay has a value randomized again, as often as it likes.",
        "internal/relay.js",
        "if (response.status >= 400) return inTheClear(relay, response, content);",
        "if (response.status >= 400) return new Response(content, response);",
        "relay",
    ),
    "requests-of-their-own-length": Twin(
        "A relay tells who takes a seat from who reports.",
        "internal/relay.js",
        "return joined(whole, new Uint8Array(length - whole.length));",
        "return whole;",
        "relay",
    ),
    "one-seal-for-all-tries": Twin(
        "The relay sees that two requests are the same, and one context seals twice.",
        "internal/relay.js",
        "await sealRequest(keys, encodeRequest({ method, url, headers, body }, length));",
        "await (keys[url] ??= sealRequest(keys, encodeRequest({ method, url, headers, body }, length)));",
        "relay",
    ),
    "another-answer-acknowledges": Twin(
        "A captive portal's page acknowledges a report that nobody has.",
        "internal/calls.js",
        "const found = answer === null ? undefined : read(response.status, answer, response.headers);",
        "const found = answer === null ? response.status : read(response.status, answer, response.headers);",
        "outbox",
    ),
    "any-model": Twin(
        "Whoever serves models chooses what some people are asked for.",
        "internal/campaign.js",
        "insist(await isSigned(campaign, text, signature), ",
        "insist(true, ",
        "campaigns",
    ),
    "any-step": Twin(
        "An analyzer asks some people for something else, and learns who they are by whose reports come.",
        "internal/campaign.js",
        "insist(model.step !== null && campaign.mayAsk(model.step), ",
        "insist(true, ",
        "campaigns",
    ),
    "unnoticed-visits": Twin(
        "A person who comes back reports as often as the page is opened, with the noise of one visit.",
        "internal/device.js",
        'if (!this.#mayVisit(place.seating, visits)) return outcome("took part");',
        "",
        "campaigns",
    ),
    "any-slot": Twin(
        "A shuffler puts people of one model into the slots of another.",
        "internal/task.js",
        "insist(isOpen, `${words}: it is in a slot that may not answer by this model.`);",
        "",
        "campaigns",
    ),
    "shares-of-another-modulus": Twin(
        "A share is not uniform: its highest bit says something about the number.",
        "internal/running.js",
        "const drawn = uniformBits(bits, length, numbers.length * (shares - 1));",
        "const drawn = uniformBits(bits, length - 1, numbers.length * (shares - 1));",
        "vectors",
    ),
    "noise-of-the-wrong-slots": Twin(
        "What a slot's people add is taken back in the wrong window, and never hides anybody.",
        "internal/carried.js",
        "found[later + place][label] += BigInt(times) * each",
        "found[place][label] += BigInt(times) * each",
        "vectors",
    ),
}


@pytest.fixture(scope="module")
def node(tmp_path_factory: pytest.TempPathFactory) -> Node:
    """Node, with the client and its dependency."""
    return node_in(tmp_path_factory.mktemp("javascript"))


@pytest.mark.parametrize("name", TWINS)
def test_a_wrong_twin_fails_its_tests(node: Node, tmp_path: Path, name: str) -> None:
    twin = TWINS[name]
    copy = tmp_path / "twin"
    shutil.copytree(node.folder, copy, symlinks=True)
    text = (copy / twin.file).read_text("utf-8")
    assert text.count(twin.old) == 1, "what it changes is not there any more"
    (copy / twin.file).write_text(text.replace(twin.old, twin.new), "utf-8")
    ran = Node(copy).run("--test", "--test-reporter=tap", f"test/{twin.tests}.test.js")
    # It is refused by a test, and not because it could not be loaded.
    assert ran.returncode == 1 and "\n# pass 0\n" not in ran.stdout, ran.stdout[-3000:]
