"""Plans as text, JSON and Mermaid."""

from __future__ import annotations

import json
import re

import pytest

from penstock.datastream import OutputTag
from penstock.datastream.connectors.collection import CollectionSource
from penstock.datastream.data_stream import DataStream
from penstock.datastream.functions import ProcessFunction
from penstock.graph.location import user_location
from penstock.graph.stream_graph import Edge, StreamGraph
from penstock.plan.explain import explain_json, explain_mermaid, explain_text
from penstock.plan.translate import PlanDefaults, translate
from penstock.runtime.operators.sources import PythonSource
from penstock.runtime.physical import JobSettings, PhysicalPlan

SETTINGS = JobSettings("id", "demo", "run", "/root", "/local", "hashmap", 1000, 1000, 10.0, False)


class Env:
    def __init__(self) -> None:
        self._graph = StreamGraph()


class Split(ProcessFunction):
    def process_element(self, value: object, ctx: object) -> None:
        return None


@pytest.fixture
def plan() -> PhysicalPlan:
    """
    Numbers ── Map ── key ── Reduce ── Sink: Print
                └─ odd ── rebalance ── Sink: Odd
    """
    env = Env()
    node = env._graph.add(
        "Source: Numbers",
        PythonSource(CollectionSource([1])),
        (),
        location=user_location(),
        fixed_parallelism=1,
        uid="numbers",
    )
    stream = DataStream(env, (Edge(node.id),))  # type: ignore[arg-type]
    split = stream.process(Split()).name('Split "odd"').uid("split").set_parallelism(1)
    split.key_by(0).sum(1).uid("sum").print().uid("out")
    odd = split.get_side_output(OutputTag("odd"))
    odd.rebalance().print().name("Sink: Odd").uid("odd")
    return translate(env._graph.nodes, PlanDefaults(2), SETTINGS)


def test_text(plan: PhysicalPlan) -> None:
    text = re.sub(r"\S+test_explain.py:\d+", "HERE", explain_text(plan))
    assert text == (
        "Job 'demo': 5 operators in 3 chains and 2 stages\n"
        "\n"
        "Stage 0 (1 task)\n"
        "  [0] Source: Numbers -> Split \"odd\"  (parallelism 1, max 128)\n"
        "    ├─ Source: Numbers  uid numbers  at HERE\n"
        "    └─ Split \"odd\"      uid split  at HERE\n"
        "\n"
        "Stage 1 (2 tasks)\n"
        "  [1] Sum -> Sink: Print  (parallelism 2, max 128, keyed input)\n"
        "    <- HASH from [0] Split \"odd\"\n"
        "    ├─ Sum          uid sum  at HERE\n"
        "    └─ Sink: Print  uid out  at HERE\n"
        "  [2] Sink: Odd  (parallelism 2, max 128)\n"
        "    <- REBALANCE of side output 'odd' from [0] Split \"odd\"\n"
        "    └─ Sink: Odd  uid odd  at HERE\n"
    )  # fmt: skip


def test_json_has_flinks_shape(plan: PhysicalPlan) -> None:
    nodes = json.loads(explain_json(plan))["nodes"]
    shown = [(n["id"], n["type"], n["pact"], n["contents"], n["parallelism"]) for n in nodes]
    assert shown == [
        (0, "Source: Numbers", "Data Source", "Source: Numbers", 1),
        (1, 'Split "odd"', "Operator", 'Split "odd"', 1),
        (2, "Sum", "Operator", "Sum", 2),
        (3, "Sink: Print", "Data Sink", "Sink: Print", 2),
        (4, "Sink: Odd", "Data Sink", "Sink: Odd", 2),
    ]
    assert "predecessors" not in nodes[0]
    assert [node["predecessors"] for node in nodes[1:]] == [
        [{"id": 0, "ship_strategy": "FORWARD", "side": "first"}],
        [{"id": 1, "ship_strategy": "HASH", "side": "first"}],
        [{"id": 2, "ship_strategy": "FORWARD", "side": "first"}],
        [{"id": 1, "ship_strategy": "REBALANCE", "side": "first", "side_output": "odd"}],
    ]


def test_json_says_more_than_flinks(plan: PhysicalPlan) -> None:
    nodes = json.loads(explain_json(plan))["nodes"]
    assert [(n["uid"], n["stage"], n["chain"], n["keyed"]) for n in nodes] == [
        ("numbers", 0, 0, False),
        ("split", 0, 0, False),
        ("sum", 1, 1, True),
        ("out", 1, 1, False),
        ("odd", 1, 2, False),
    ]
    assert all(n["location"].startswith(f"{__file__}:") for n in nodes)
    assert {n["max_parallelism"] for n in nodes} == {128}


def test_mermaid(plan: PhysicalPlan) -> None:
    assert explain_mermaid(plan) == (
        "flowchart LR\n"
        '  subgraph stage0["Stage 0"]\n'
        '    subgraph chain0["parallelism 1"]\n'
        '      n0["Source: Numbers"]\n'
        '      n1["Split #quot;odd#quot;"]\n'
        "    end\n"
        "  end\n"
        '  subgraph stage1["Stage 1"]\n'
        '    subgraph chain1["parallelism 2, keyed"]\n'
        '      n2["Sum"]\n'
        '      n3["Sink: Print"]\n'
        "    end\n"
        '    subgraph chain2["parallelism 2"]\n'
        '      n4["Sink: Odd"]\n'
        "    end\n"
        "  end\n"
        "  n0 --> n1\n"
        '  n1 -->|"HASH"| n2\n'
        "  n1 -->|\"REBALANCE of side output 'odd'\"| n4\n"
        "  n2 --> n3\n"
    )


def test_a_loop() -> None:
    env = Env()
    source = PythonSource(CollectionSource([1]))
    node = env._graph.add("Source", source, (), location=user_location())
    loop = DataStream(env, (Edge(node.id),)).iterate().uid("loop")  # type: ignore[arg-type]
    body = loop.key_by(0).sum(1).name("Body")
    loop.close_with(body)
    body.print()
    plan = translate(env._graph.nodes, PlanDefaults(2), SETTINGS)

    assert "  [1] Iteration  (parallelism 2, max 128)\n" in explain_text(plan)
    assert "    <- feedback: FORWARD from [2] Body\n" in explain_text(plan)
    nodes = {node["type"]: node for node in json.loads(explain_json(plan))["nodes"]}
    assert [p["side"] for p in nodes["Iteration"]["predecessors"]] == ["first", "feedback"]
    assert 'n2 -.->|"feedback: FORWARD"| n1' in explain_mermaid(plan)
