"""What is kept of requests: records, sums, costs, and metrics in the form of Prometheus."""

import json
import math
import re
from collections import defaultdict
from types import SimpleNamespace
from typing import Any, NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ferrule.models import Prices
from ferrule.serve.proxy.records import RequestRecords, clean_client_text
from ferrule.serve.proxy.upstreams import HostLimits
from ferrule.settings import ProxySettings
from ferrule.wire import Usage
from tests.models.server import serving
from tests.serve.proxy.proxied import APIS, BY_API, TOKEN, fails, hosts, proxied, says, talks

_NAME = r"[a-zA-Z_:][a-zA-Z0-9_:]*"
_SAMPLE = re.compile(rf"({_NAME})(?:\{{(.*)\}})? (\S+)")
_LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\["\\n])*)"(?:,|$)')


class Sample(NamedTuple):
    name: str
    labels: dict[str, str]
    value: float


def parsed(text: str) -> list[Sample]:
    """The samples of a page in the text form of Prometheus, held to every rule of it."""
    assert text == "" or text.endswith("\n")
    kinds: dict[str, str] = {}
    described: set[str] = set()
    over: set[str] = set()
    current = ""
    samples: list[Sample] = []
    for line in text.split("\n")[:-1]:
        if line.startswith("# HELP "):
            _, _, name, words = line.split(" ", 3)
            assert re.fullmatch(_NAME, name)
            assert name not in described
            assert words
            described.add(name)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            assert kind in {"counter", "gauge", "histogram"}
            assert name in described
            assert name not in kinds
            over.add(current)
            current, kinds[name] = name, kind
        else:
            found = _SAMPLE.fullmatch(line)
            assert found is not None, line
            name, inside, number = found.groups()
            family = name
            if name not in kinds:
                family, _, suffix = name.rpartition("_")
                assert (kinds.get(family), suffix) in {("histogram", end) for end in ("bucket", "sum", "count")}
            assert family == current, "samples of one name stand together, behind its description"
            assert family not in over
            labels, rest = {}, inside or ""
            while rest:
                label = _LABEL.match(rest)
                assert label is not None, rest
                assert label[1] not in labels
                labels[label[1]] = label[2]
                rest = rest[label.end() :]
            value = float(number)
            assert math.isfinite(value)
            samples.append(Sample(name, labels, value))
    keys = [(one.name, tuple(sorted(one.labels.items()))) for one in samples]
    assert len(keys) == len(set(keys)), "no sample is there twice"
    _check_histograms(samples, [name for name, kind in kinds.items() if kind == "histogram"])
    return samples


def _check_histograms(samples: list[Sample], names: list[str]) -> None:
    for name in names:
        buckets: dict[tuple[tuple[str, str], ...], list[tuple[float, float]]] = defaultdict(list)
        counts = {}
        for one in samples:
            labels = {key: text for key, text in one.labels.items() if key != "le"}
            key = tuple(sorted(labels.items()))
            if one.name == f"{name}_bucket":
                buckets[key].append((float(one.labels["le"]), one.value))
            elif one.name == f"{name}_count":
                counts[key] = one.value
        for key, rows in buckets.items():
            assert rows == sorted(rows)
            assert [count for _, count in rows] == sorted(count for _, count in rows)
            assert rows[-1] == (math.inf, counts[key])


class Clock:
    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now


def upstream(name: str, *, rests: bool = False) -> Any:
    return SimpleNamespace(name=name, breaker=SimpleNamespace(is_open=rests))


def test_a_request_is_measured_from_its_begin_to_its_first_byte_and_to_its_end():
    clock = Clock()
    records = RequestRecords(clock=clock, now=lambda: 1_700_000_000.0)
    record = records.begin("gemini", "qwen")
    assert records.open == {1: record}

    clock.now += 0.25
    records.first(record)
    clock.now += 1
    records.first(record)
    records.end(record)
    records.end(record)

    assert (record.at, record.first_ms, record.ms) == (1_700_000_000.0, 250.0, 1250.0)
    assert records.open == {}
    assert list(records.recent) == [record]


def test_everybody_who_wants_to_is_told_of_each_end_once():
    told: list[int] = []
    records = RequestRecords([lambda record: told.append(record.number), lambda record: told.append(-record.number)])
    first, second = records.begin("gemini", ""), records.begin("gemini", "")

    for record in (second, first, second):
        records.end(record)

    assert told == [2, -2, 1, -1]


def test_tokens_and_dollars_are_added_up_by_model():
    records = RequestRecords()
    for model, prices in (("a:x", Prices(1.0, 2.0, 0.1, 1.25)), ("a:x", Prices(1.0, 2.0, 0.1, 1.25)), ("b:y", None)):
        record = records.begin("anthropic", "")
        record.model, record.status = model, 200
        record.count(Usage(1_000_000, 500_000, 400_000, 100_000), prices)
        records.end(record)

    costs = records.costs()
    one = 0.5 * 1.0 + 0.5 * 2.0 + 0.4 * 0.1 + 0.1 * 1.25
    assert costs["cost"] == pytest.approx(2 * one)
    assert costs["models"]["a:x"]["requests"] == 2
    assert costs["models"]["a:x"]["cost"] == pytest.approx(2 * one)
    assert costs["models"]["b:y"] == {
        "requests": 1,
        "input": 1_000_000,
        "output": 500_000,
        "cache_read": 400_000,
        "cache_write": 100_000,
        "cost": 0.0,
    }
    assert records.tokens() == Usage(3_000_000, 1_500_000, 1_200_000, 300_000)


def test_only_the_newest_requests_are_kept():
    records = RequestRecords()
    for _ in range(500):
        records.end(records.begin("gemini", ""))

    assert [one.number for one in records.recent] == list(range(301, 501))
    assert records.count == 500


def test_models_that_clients_make_up_do_not_let_the_sums_grow_for_ever():
    records = RequestRecords()
    for number in range(3_000):
        record = records.begin("gemini", "")
        record.model, record.status = f"up:{number}", 404
        records.end(record)

    samples = [one for one in parsed(records.prometheus([], {})) if one.name == "ferrule_proxy_requests_total"]
    assert len(samples) == 1_001
    assert sum(one.value for one in samples) == 3_000
    assert [one.value for one in samples if one.labels["model"] == "others"] == [2_000]


names = st.text(st.characters(codec="utf-8"), max_size=12)


@given(
    requests=st.lists(
        st.tuples(st.sampled_from(APIS), names, st.sampled_from([200, 400, 429, 499, 502]), st.floats(0, 500)),
        max_size=15,
    ),
    host=names,
)
def test_the_page_of_metrics_is_always_one(requests, host):
    clock = Clock()
    records = RequestRecords(clock=clock)
    for api, model, status, seconds in requests:
        record = records.begin(api, "")
        record.model, record.status = model, status
        clock.now += seconds
        records.first(record)
        records.end(record)
    records.begin("gemini", "")

    page = records.prometheus([upstream(host, rests=True)], {host: HostLimits(host, ProxySettings(), clock)})

    samples = parsed(page)
    assert sum(one.value for one in samples if one.name == "ferrule_proxy_requests_total") == len(requests)
    assert [one.value for one in samples if one.name == "ferrule_proxy_requests_open"] == [1]
    assert [one.value for one in samples if one.name == "ferrule_proxy_model_resting"] == [1]
    assert sum(one.value for one in samples if one.name == "ferrule_proxy_request_seconds_count") == len(requests)


@given(text=st.text(max_size=400))
def test_what_clients_write_is_shown_on_one_bounded_line(text):
    assert clean_client_text(text).isprintable()
    assert len(clean_client_text(text)) <= 200


def test_plain_words_are_shown_as_they_are():
    assert clean_client_text("claude-cli/2.1 (größer) 日本") == "claude-cli/2.1 (größer) 日本"
    assert clean_client_text("a\x1b[31m\r\nb") == "a\ufffd[31m\ufffd\ufffdb"


@pytest.mark.parametrize("api", ["anthropic", "openai-responses", "gemini", "openai-chat"])
async def test_the_tokens_of_every_host_reach_the_record_and_its_pages(api):
    spoken = BY_API[api]
    async with serving() as server:
        server.play(says(spoken))
        async with proxied(hosts(server, api=api)) as proxy:
            for stream in (True, False):
                await proxy.ask("openai-chat" if api == "anthropic" else "anthropic", stream=stream)
            await proxy.until(lambda: len(proxy.ended) == 2)
            costs = (await proxy.get("/costs")).json()
            samples = parsed((await proxy.get("/metrics")).text)
            requests = (await proxy.get("/requests")).json()
            resting = (await proxy.get("/hosts")).json()

    usage, row = spoken.usage, costs["models"]["up0:m"]
    assert (row["input"], row["output"]) == (2 * usage.input, 2 * usage.output)
    assert (row["cache_read"], row["cache_write"]) == (2 * usage.cache_read, 2 * usage.cache_write)
    assert costs["cost"] == pytest.approx(2 * Prices(1.0, 2.0, 0.1, 1.25).cost(usage))
    assert [one["number"] for one in requests] == [2, 1]
    assert {one["state"] for one in requests} == {"done"}
    assert resting == [{"model": "up0:m", "resting_seconds": 0.0, "is_open": False}]
    counted = {one.labels["kind"]: one.value for one in samples if one.name == "ferrule_proxy_tokens_total"}
    assert counted["input"] == 2 * usage.input


async def test_a_host_that_counts_nothing_is_estimated_so_that_no_client_sees_zero():
    async with serving() as server:
        server.play(talks("some words " * 20, usage={"prompt_tokens": 0, "completion_tokens": 0}))
        async with proxied(hosts(server)) as proxy:
            response = await proxy.ask("anthropic", "word " * 200)
            await proxy.until(lambda: proxy.ended)

    usage = response.json()["usage"]
    assert 150 < usage["input_tokens"] < 500
    assert 30 < usage["output_tokens"] < 100
    assert proxy.ended[0].is_estimate


async def test_names_of_clients_and_models_are_kept_harmless_and_short():
    async with serving() as server:
        server.play(talks("Hi."))
        async with proxied(hosts(server)) as proxy:
            await proxy.client.post(
                "/v1/chat/completions",
                content=json.dumps({"model": "[/]\x1b]0;x\x07" + "m" * 10_000, "messages": []}),
                headers={
                    b"authorization": f"Bearer {TOKEN}".encode(),
                    b"user-agent": b"evil\x9b31m[bold]" + b"u" * 500,
                },
            )
            await proxy.until(lambda: proxy.ended)
            page = (await proxy.get("/requests")).json()

    kept = page[0]
    assert kept["client"].isprintable()
    assert len(kept["client"]) <= 60
    assert kept["requested"].isprintable()
    assert len(kept["requested"]) <= 200


async def test_a_model_that_rests_is_told_and_is_not_asked():
    async with serving() as server:
        server.play(fails(500))
        async with proxied(hosts(server), failures=2, retries=0, rest_seconds=100) as proxy:
            statuses = [(await proxy.ask("anthropic")).status_code for _ in range(3)]
            refused = await proxy.ask("anthropic")
            samples = parsed((await proxy.get("/metrics")).text)
            resting = (await proxy.get("/hosts")).json()

    assert statuses == [502, 502, 529]
    assert len(server.asked) == 2
    assert 90 < int(refused.headers["retry-after"]) <= 100
    assert "left alone" in refused.json()["error"]["message"]
    assert [one.value for one in samples if one.name == "ferrule_proxy_model_resting"] == [1]
    assert resting[0]["is_open"]


async def test_no_secret_and_no_word_of_what_was_said_is_in_any_page(monkeypatch):
    monkeypatch.setenv("OPENROUTER_API_KEY", "sk-or-v1-the-secret-key-of-the-user")
    async with serving() as server:
        server.play(fails(401, "The key sk-or-v1-the-secret-key-of-the-user is wrong."), talks("the secret answer"))
        models = hosts(server)
        models.hosts["openrouter"] = type(models.hosts["up0"])(url=server.url)
        rules = {"*": ("openrouter:m", "up0:m"), "alone": "openrouter:m"}
        async with proxied(models, models=rules) as proxy:
            answer = await proxy.ask("openai-chat", "the secret question", stream=True)
            server.play(fails(401, "The key sk-or-v1-the-secret-key-of-the-user is wrong."))
            refused = await proxy.ask("openai-chat", "the secret question", model="alone")
            pages = [(await proxy.get(path)).text for path in ("/metrics", "/costs", "/requests", "/hosts")]
            headers = str([*answer.headers.items(), *refused.headers.items()])

    assert "secret answer" in answer.text
    assert refused.status_code == 403
    for page in [*pages, headers, refused.text]:
        assert "sk-or-v1" not in page
        assert TOKEN not in page
        assert "the secret" not in page
