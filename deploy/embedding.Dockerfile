# The built-in embedding server: multilingual-e5-small on the CPU behind POST /v1/embeddings.
#   docker build -f deploy/embedding.Dockerfile -t weir-embedding .
FROM python:3.12-slim
COPY scripts/requirements.txt /tmp/requirements.txt
RUN pip install --no-cache-dir --no-deps --require-hashes -r /tmp/requirements.txt
COPY localembed/server.py /server.py
# Write the model's graph now, so that the start takes seconds and needs no writable disk.
RUN python /server.py --prepare --cache /models
USER 65532:65532
EXPOSE 8090
CMD ["python", "/server.py", "--host", "0.0.0.0", "--port", "8090", "--cache", "/models"]
