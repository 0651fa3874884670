#!/usr/bin/env python3
"""Measures the server: documents of 350 tokens a second, and the latency of a short query over one kept
connection, alone and while documents are being embedded.

    python localembed/bench.py --cache DIR            starts a server of its own
    python localembed/bench.py --url http://HOST:PORT measures a running one
"""
import argparse
import http.client
import json
import os
import random
import subprocess
import sys
import threading
import time
import urllib.parse

MODEL = "multilingual-e5-small"
TOKENS = 350
WORDS = "river weir water stone bridge market winter report engine signal window paper garden number letter".split()


class Client:
    def __init__(self, url):
        self.connection = http.client.HTTPConnection(urllib.parse.urlsplit(url).netloc, timeout=300)

    def embed(self, texts):
        """Seconds taken and tokens counted."""
        began = time.perf_counter()
        self.connection.request("POST", "/v1/embeddings", json.dumps(
            {"model": MODEL, "input": texts, "encoding_format": "base64"}), {"Content-Type": "application/json"})
        response = self.connection.getresponse()
        body = json.loads(response.read())
        if response.status != 200:
            raise SystemExit(f"bench: {response.status} {body}")
        return time.perf_counter() - began, body["usage"]["total_tokens"]


def document(client, rng):
    """A text of about TOKENS tokens."""
    words = [rng.choice(WORDS) for _ in range(TOKENS - 3)]
    _, tokens = client.embed([" ".join(words)])
    return " ".join(words[:int(len(words) * TOKENS / tokens)])


def percentile(times, p):
    return 1000 * sorted(times)[min(len(times) - 1, int(len(times) * p))]


def measure(url, documents, queries):
    rng, client, other = random.Random(7), Client(url), Client(url)
    query = "query: how high does the river stand in winter?"
    for _ in range(20):
        client.embed([query])
    alone = [client.embed([query])[0] for _ in range(queries)]
    texts = [document(client, rng) for _ in range(documents)]
    seconds = tokens = 0
    for i in range(0, documents, 16):
        took, n = client.embed(texts[i:i + 16])
        seconds, tokens = seconds + took, tokens + n
    busy, batch = [], threading.Thread(target=other.embed, args=(texts,))
    batch.start()
    while batch.is_alive():
        busy.append(client.embed([query])[0])
    return {
        "documents_per_second": round(documents / seconds, 1), "tokens_per_document": round(tokens / documents),
        "query_p50_ms": round(percentile(alone, .5), 2), "query_p95_ms": round(percentile(alone, .95), 2),
        "query_p50_ms_while_busy": round(percentile(busy, .5), 1),
        "query_p95_ms_while_busy": round(percentile(busy, .95), 1),
        "cpus": os.cpu_count(), "load_average": round(os.getloadavg()[0], 1),
    }


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--url", help="of a running server")
    p.add_argument("--cache", help="folder of the written graph, for a server of its own")
    p.add_argument("--documents", type=int, default=96)
    p.add_argument("--queries", type=int, default=300)
    a = p.parse_args()
    if a.url:
        print(json.dumps(measure(a.url, a.documents, a.queries)))
        return
    script = os.path.join(os.path.dirname(os.path.abspath(__file__)), "server.py")
    command = [sys.executable, script, "--port", "0", "--parent-pid", str(os.getpid())]
    began = time.perf_counter()
    child = subprocess.Popen(command + (["--cache", a.cache] if a.cache else []), stdout=subprocess.PIPE, text=True)
    try:
        line = child.stdout.readline()
        if not line:
            raise SystemExit("bench: the server did not start")
        ready = time.perf_counter() - began
        print(json.dumps({"start_seconds": round(ready, 2),
                          **measure(line.split(",")[0].split(" on ")[1], a.documents, a.queries)}))
    finally:
        child.terminate()
        child.wait()


if __name__ == "__main__":
    main()
