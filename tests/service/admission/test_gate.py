"""A task that names an issuer, over HTTP: who is let in, what is answered to whom, and what stays on disk."""

import hashlib
import json
from contextlib import ExitStack
from dataclasses import replace

import numpy as np
import pytest

from harness.cascade import Cascade
from harness.world import accept_reports, report_of, rows
from shuffledp.errors import DataError, ParameterError
from shuffledp.learn.bandits.arms.fixed_batches import FixedBatches
from shuffledp.privacy import Privacy
from shuffledp.randomness import RandomBits
from shuffledp.service.admission.headers import asking, redeemable, showing
from shuffledp.service.admission.private_tokens import Gate, Token, from_base64url, in_base64url
from shuffledp.service.campaign import Campaign
from shuffledp.service.client import Client
from shuffledp.service.client.client import MOST_UPLOAD_BYTES, ReportError
from shuffledp.service.client.making import make_reports
from shuffledp.service.crypto import PrivateKey
from shuffledp.service.device.crowd import Crowd
from shuffledp.service.openapi import BINARY
from shuffledp.service.problems import RefusedError
from shuffledp.service.rounds import routing_of_task
from shuffledp.service.routing import Routing, Seat
from shuffledp.service.shuffler.ending import end_task
from shuffledp.service.shuffler.server import ShufflerServer
from shuffledp.service.store import open_shuffler_store
from shuffledp.service.task import Task
from shuffledp.service.wire import MOST_REPORTS_AN_UPLOAD, SentReport, new_id, single_body

SECURE = RandomBits.secure()


@pytest.fixture
def served(make_service, make_task, mint, set_clock):
    """A service with a task that takes the mint's tokens."""
    service = make_service(clock=set_clock.now)
    return service, service.add(make_task("binary coins", issuer=mint.issuer))


def seats_path(task, query=""):
    return f"/v1/tasks/{task.id}/seats{query}"


def ask_seat(service, task, token, query=""):
    headers = {} if token is None else {"Authorization": showing(token)}
    return service.at("shuffler").post(seats_path(task, query), headers=headers)


def client_of(service, task, tokens, **more):
    given = {"http": service.wire("shuffler").client, "patience": 0.0}
    return Client(task, "http://localhost", tokens, **{**given, **more})


def test_people_with_tokens_are_counted_and_nobody_else(served, mint):
    service, task = served
    users = task.routing.users
    tokens = [mint.token(task.gate).data for _ in range(users)]
    with client_of(service, task, tokens) as client:
        assert client.report_many([1] * users).new == users
    service.work()
    answer = service.at("analyzer", "read").get(f"/v1/tasks/{task.id}/estimate").json()
    assert answer["time"] == users
    counts = service.shuffler.counts(task.id)
    assert (counts["reports"], counts["batches_sent"]) == (users, 1)
    # No header of any request but that of a seat says who it is, and none has the token for enrol.
    sent = client._calls.http._transport.requests
    assert {request.headers.get("authorization", "none").split()[0] for request in sent} == {"PrivateToken", "none"}
    with client_of(service, task, tokens[:1]) as client, pytest.raises(ReportError, match="pass-spent"):
        client.report(1)


def test_the_challenge_of_a_401(served, mint):
    service, task = served
    for authorization in (None, f"Bearer {service.tokens.secrets['enrol']}", "PrivateToken", 'PrivateToken token="AA"'):
        headers = {} if authorization is None else {"Authorization": authorization}
        answer = service.at("shuffler").post(seats_path(task), headers=headers)
        assert (answer.status_code, answer.json()["type"]) == (401, "urn:shuffledp:problem:pass-needed")
        assert answer.headers["www-authenticate"] == asking(task.gate)
    assert f'token-key="{mint.issuer.key.text}"' in asking(task.gate)
    challenge = from_base64url(asking(task.gate).split('"')[1])
    # Type 2, the issuer's name, the task's id as redemption context, no origin: the same for everybody.
    expected = b"\0\2\0\x0eissuer.example\x20" + bytes.fromhex(task.id) + b"\0\0"
    assert challenge == expected == task.gate.challenge


@pytest.mark.parametrize("written", ['token="{}"', "token={}", 'token = "{}"', 'extensions="AAAA", token="{}"'])
def test_headers_that_hold_a_token(written, mint):
    gate = Gate(mint.issuer, "cd" * 32)
    token = mint.token(gate)
    for text in (in_base64url(token.data), in_base64url(token.data).rstrip("=")):
        assert redeemable(f"privatetoken {written.format(text)}", gate) == token


def test_a_thousand_forged_and_a_thousand_replayed_tokens_get_no_seat(served, mint):
    """A token is checked before anything is written; a spent one is looked up. None of either moves a seat."""
    service, task = served
    honest = mint.token(task.gate)
    seat = Seat.from_document(ask_seat(service, task, honest.data).json()["seats"][0])
    body = single_body(seat.seat, report_of(task, 1, seat.batches, bits=SECURE))
    path = f"/v1/tasks/{task.id}/reports/{new_id(bits=SECURE)}"
    answer = service.at("shuffler").put(path, content=body, headers={"Content-Type": BINARY})
    assert answer.status_code == 201, answer.text
    before = service.shuffler.counts(task.id)
    http = service.at("shuffler")
    statuses = {"replayed": set(), "forged": set()}
    for number in range(1000):
        forged = bytearray(honest.data)
        # The signature of another nonce, and one with another bit changed each time.
        place = 2 + number % 32 if number % 2 else 98 + number % 256
        forged[place] ^= 1 << number % 8
        for kind, token in (("replayed", honest.data), ("forged", bytes(forged))):
            statuses[kind].add(http.post(seats_path(task), headers={"Authorization": showing(token)}).status_code)
    assert statuses == {"replayed": {403}, "forged": {401}}
    assert service.shuffler.counts(task.id) == before == {**before, "seats_taken": 1, "leases": 0, "reports": 1}


def test_tokens_of_others_are_refused(served, mint, new_mint, make_task):
    service, task = served
    other = new_mint()
    elsewhere = make_task("binary coins", issuer=mint.issuer)
    for token in (
        # Another key, that key for this task's challenge, another task's challenge, and a token without its end.
        other.token(Gate(other.issuer, task.id)).data,
        other.token(task.gate).data,
        mint.token(elsewhere.gate).data,
        mint.token(task.gate).data[:-1],
        b"\0\1" + mint.token(task.gate).data[2:],
        mint.token(Gate(replace(mint.issuer, name="other.example"), task.id)).data,
    ):
        assert ask_seat(service, task, token).status_code == 401
    assert service.shuffler.counts(task.id)["seats_taken"] == 0
    # And one for two seats.
    assert ask_seat(service, task, mint.token(task.gate).data, "?count=2").status_code == 400


def test_a_killed_client_gets_its_seat_back(served, mint, set_clock):
    service, task = served
    token = mint.token(task.gate)
    first, again = (ask_seat(service, task, token.data).json()["seats"][0] for _ in range(2))
    assert first == again
    set_clock.time += service.lease_seconds - 1
    later = ask_seat(service, task, token.data).json()["seats"][0]
    assert (later["seat"], later["lease_seconds"]) == (first["seat"], 1.0)
    set_clock.time += 1
    assert ask_seat(service, task, token.data).json()["seats"][0]["seat"] != first["seat"]
    assert service.shuffler.counts(task.id)["seats_taken"] == 1


def test_a_client_whose_lease_ran_out_reports_with_the_same_token(served, mint, set_clock):
    service, task = served
    gone = []

    def seated(seats):
        # Slower than its lease, twice.
        if len(gone) < 2:
            set_clock.time += service.lease_seconds
        gone.append(seats[0].seat)

    with client_of(service, task, [mint.token(task.gate).data], seated=seated) as client:
        sent = client.report(1)
    assert (sent.new, sent.retried, len(set(gone))) == (1, 2, 3)


def test_reports_need_no_token_and_a_seat_that_somebody_has(served, mint):
    service, task = served
    http = service.at("shuffler")
    path, media = f"/v1/tasks/{task.id}/reports/{new_id(bits=SECURE)}", {"Content-Type": BINARY}
    body = bytes(task.routing.longest_report_bytes)
    answer = http.put(path, content=single_body("00" * 16, body), headers=media)
    assert (answer.status_code, answer.json()["type"]) == (410, "urn:shuffledp:problem:seat-gone")
    # Tasks without an issuer ask for the token for enrol as ever, and what is unknown is not told to strangers.
    assert http.post(f"/v1/tasks/{'00' * 32}/seats").status_code == 401
    end_task(service.shuffler._store, task.id, drop=True)


def test_strangers_cannot_fill_its_memory_with_uploads(make_service, make_task, mint):
    """Reports need no token where seats cost one: no more is read of anybody than clients send at a time."""
    service, media = make_service(), {"Content-Type": BINARY}
    large = replace(make_task("binary coins").routing, messages={20: 20_000})
    for issuer, status in ((mint.issuer, 413), (None, 400)):
        text = json.dumps({"routing": replace(large, issuer=issuer).document()})
        path = f"/v1/tasks/{service.shuffler.add_task(text)[0]}/reports"
        http = service.at("shuffler") if issuer else service.at("shuffler", "enrol")
        assert http.post(path, content=b"\xff" * (8 << 20), headers=media).status_code == 400
        assert http.post(path, content=b"\xff" * ((8 << 20) + 1), headers=media).status_code == status
    assert MOST_UPLOAD_BYTES + 36 * MOST_REPORTS_AN_UPLOAD < 8 << 20


def test_other_tasks_go_on_as_they_were(make_service, make_task, mint):
    service = make_service()
    plain = service.add(make_task("binary coins"))
    service.add(make_task("binary coins", issuer=mint.issuer))
    assert plain.gate is None
    assert plain.document["version"] == plain.routing.document()["version"] == 1
    assert "issuer" not in plain.text
    service.send(plain, [1] * plain.routing.users)
    assert ask_seat(service, plain, mint.token(Gate(mint.issuer, plain.id)).data).status_code == 401


def test_one_key_a_task(make_service, make_task, mint, new_mint):
    service = make_service()
    first = service.add(make_task("binary coins", issuer=mint.issuer))
    service.add(first)
    with pytest.raises(ParameterError, match=rf"issuer must have a key of its own, not that of task {first.id[:12]}"):
        service.shuffler.add_task(make_task("binary coins", issuer=mint.issuer).text)
    service.add(make_task("binary coins", issuer=new_mint().issuer))


def test_one_key_a_task_whichever_process_was_given_it(postgresql, tmp_path, make_task, mint):
    """Two processes on one store: each has read the tasks before the other was given one."""
    address = postgresql.address(tmp_path / "batch keys", postgresql.new_schema())
    with ExitStack() as opened:
        one, other = (ShufflerServer(open_shuffler_store(address), post=lambda path, body: 503) for _ in range(2))
        opened.callback(one.stop)
        opened.callback(other.stop)
        first = make_task("binary coins", issuer=mint.issuer)
        one.add_task(first.text)
        with pytest.raises(ParameterError, match=rf"must have a key of its own, not that of task {first.id[:12]}"):
            other.add_task(make_task("binary coins", issuer=mint.issuer).text)
        other.add_task(first.text)


def test_documents_name_the_issuer(make_task, mint):
    task = make_task("binary coins", issuer=mint.issuer)
    assert Task.from_text(task.text) == task
    assert (task.document["version"], task.document["routing"]["version"]) == (4, 4)
    assert task.routing.issuer == mint.issuer
    assert routing_of_task(task.text) == (task.id, task.routing)
    hops = [PrivateKey.generate().public for _ in range(2)]
    cascade = make_task("binary coins", issuer=mint.issuer, hops=hops)
    assert Task.from_text(cascade.text) == cascade
    # Keys that expire have a version of their own, and an issuer's is above it.
    both = make_task("binary coins", issuer=mint.issuer, expires={hops[0].text: "2999-12-31"}, hops=hops)
    assert (Task.from_text(both.text).expires, both.document["version"]) == ({hops[0].text: "2999-12-31"}, 4)
    # Tokens are for the first hop: a later one does not hear of them.
    assert cascade.routing.at_hop(1).issuer == mint.issuer
    assert cascade.routing.at_hop(2).issuer is None
    assert cascade.routing.at_hop(2).document()["version"] == 2
    # A version that earlier programs would read, and go by without tokens, is refused.
    document = dict(task.routing.document())
    for change in ({"version": 1}, {"version": 4, "issuer": None}, {"version": 4, "issuer": {}}):
        with pytest.raises(DataError, match=r"issuer|routing\.version"):
            Routing.from_document({**document, **change})
    with pytest.raises(DataError, match=r"routing\.version must be 4 where an issuer is named"):
        Routing.from_document({name: value for name, value in document.items() if name != "issuer"})
    text = task.text.replace(mint.issuer.name, "thief.example")
    assert Task.from_text(text).id != task.id


def test_a_campaign_takes_a_token_a_visit(make_service, mint):
    service = make_service()
    policy = FixedBatches(arms=2, horizon=40, privacy=Privacy(4, 1e-2), batch=20, method="coins")
    campaign = service.campaign(policy, issuer=mint.issuer)
    assert Campaign.from_text(campaign.text) == campaign
    assert json.loads(campaign.text)["routing"]["version"] == 4
    gate = Gate(mint.issuer, campaign.id)
    assert campaign.round_task(0, 0).gate == gate
    [token] = tokens = [mint.token(gate).data]
    with service.device(campaign, token=tokens) as device:
        assert device.reward(device.choose(), 1.0).status == "reported"
    # Another memory, the same token: the shuffler knows that this person took part.
    with service.device(campaign, token=tokens) as device:
        assert device.reward(device.choose(), 1.0).status == "took part"
    with service.device(campaign, token=[]) as device, pytest.raises(ParameterError, match="must be one a value"):
        device.reward(device.choose(), 1.0)
    crowd = [mint.token(gate).data for _ in range(3)]
    reaching = {"shuffler": "http://localhost", "analyzer": "http://localhost", "token": crowd}
    https = {"http": service.at("shuffler"), "models_http": service.at("analyzer")}
    with Crowd(campaign, **reaching, **https) as everybody:
        came = list(everybody.come(3, lambda step, people: np.ones(len(people), dtype=np.int64)))
    assert [each.places.tolist() for each in came if each.reported] == [[0, 1, 2]]
    for spent in (token, crowd[1]):
        assert ask_seat(service, campaign.round_task(1, 0), spent).status_code == 403


def test_what_is_left_of_tokens_after_a_batch_left(served, mint):
    """Only that they are spent, in the order of their digests: no seat, no place, no batch, no arrival."""
    service, task = served
    users = task.routing.users
    tokens = [mint.token(task.gate) for _ in range(users)]
    with client_of(service, task, [token.data for token in tokens]) as client:
        client.report_many([1] * users)
    names = [bytes.fromhex(token.name) for token in tokens]
    store = service.shuffler._store
    assert sorted(row[0] for row in rows(store, "SELECT token FROM redeeming")) == sorted(names)
    service.work()
    assert rows(store, "SELECT * FROM held") == rows(store, "SELECT * FROM redeeming") == []
    assert rows(store, "SELECT * FROM redeemed") == [(task.id, name, 3) for name in sorted(names)]
    data = (service.folder / "shuffler.db").read_bytes()
    assert not (service.folder / "shuffler.db-wal").stat().st_size
    # As SQLite lays rows down: sorted, and each digest once in the whole file.
    places = [data.index(name) for name in sorted(names)]
    assert places in (sorted(places), sorted(places, reverse=True))
    assert all(data.count(name) == 1 for name in names)
    for token in tokens:
        assert token.signed[2:34] not in data, "a nonce is nobody's business after the digest was taken"
        assert hashlib.sha256(token.data).digest() not in data


def test_clients_that_hold_the_wrong_thing(make_task, mint, new_mint):
    task, plain = make_task("binary coins", issuer=mint.issuer), make_task("binary coins")
    token = mint.token(task.gate).data
    for given, wrong, error in (
        (task, "a" * 64, "token must be a list of tokens of issuer.example"),
        (task, token, "token must be a list of tokens"),
        (task, [token[:-1]], "must be a token of type 2"),
        (task, [mint.token(Gate(mint.issuer, plain.id)).data], "must be signed by issuer.example for this task"),
        (task, [new_mint().token(task.gate).data], "must be signed by issuer.example for this task"),
        (plain, [token], "token must be the secret of the role enrol"),
    ):
        with pytest.raises(ParameterError, match=error):
            Client(given, "http://localhost", wrong)
    with (
        Client(task, "http://localhost", [token]) as client,
        pytest.raises(ParameterError, match="must be one a value"),
    ):
        client.report_many([1, 1])


def test_a_token_says_nothing_of_itself(mint):
    token = mint.token(Gate(mint.issuer, "cd" * 32))
    assert token.name not in repr(token)
    assert Token.from_bytes(token.data) == token
    with pytest.raises(RefusedError) as refused:
        redeemable(showing(token.data), Gate(mint.issuer, "ef" * 32))
    assert in_base64url(token.data) not in str(refused.value)


def test_two_signatures_of_one_nonce_are_one_token(served, mint):
    """Signatures have random salts: whoever has the same nonce signed twice pays twice for one seat."""
    service, task = served
    tokens = [mint.token(task.gate, nonce=bytes(range(32))) for _ in range(2)]
    assert tokens[0].signature != tokens[1].signature
    seats = {ask_seat(service, task, token.data).json()["seats"][0]["seat"] for token in tokens}
    assert len(seats) == 1
    assert service.shuffler.counts(task.id)["seats_taken"] == 1


def test_in_a_cascade_the_first_hop_takes_tokens_and_no_other_hears_of_them(tmp_path, mint, plan_named):
    cascade = Cascade(tmp_path, hops=2)
    try:
        made = Task.create(
            plan_named("binary coins"), cascade.key.public, bits=SECURE, hops=cascade.public, issuer=mint.issuer
        )
        task, first = cascade.serve(made), cascade.servers[1]
        with pytest.raises(RefusedError, match="takes tokens of its issuer"):
            first.take_seats(task.id, 1).result()
        names = [mint.token(task.gate).name for _ in range(task.routing.users)]
        seats = [first.take_seats(task.id, 1, None, name).result()[0] for name in names]
        bodies = make_reports(task, np.ones(len(seats), dtype=np.int64), [seat.batches for seat in seats], bits=SECURE)
        sent = [SentReport(new_id(bits=SECURE), seat.seat, body) for seat, body in zip(seats, bodies, strict=True)]
        assert all(answer.new for answer in accept_reports(first, task.id, sent).result())
        with pytest.raises(RefusedError, match="gets no other seat"):
            first.take_seats(task.id, 1, None, names[0]).result()
        for server in cascade.servers.values():
            assert server.seal_full() and server.send_waiting()
        cascade.analyzer.read_all()
        assert cascade.analyzer.progress(task.id).batches_read == 1
        # What the second hop's store has of the task names no issuer, and its tables have no token.
        [text] = rows(cascade.servers[2]._store, "SELECT routing FROM tasks")
        assert "issuer" not in text[0]
        assert rows(cascade.servers[2]._store, "SELECT * FROM redeemed") == []
        # A hop that is started again knows who it takes.
        cascade.servers[1].stop()
        assert cascade.start(1).tasks[task.id].issuer == mint.issuer
    finally:
        cascade.close()
