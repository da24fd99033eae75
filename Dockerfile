# One image for the three services; the command says which one runs.
FROM python:3.12-slim AS libraries
COPY requirements.lock .
RUN python -m venv /app && /app/bin/pip install --no-cache-dir --require-hashes -r requirements.lock

FROM python:3.12-slim
RUN useradd --uid 10001 --create-home --home-dir /data service
COPY --from=libraries /app /app
WORKDIR /app/src
COPY memory_service memory_service
COPY agent_service agent_service
COPY gateway gateway
COPY rpc rpc
COPY database database
ENV PATH=/app/bin:$PATH PYTHONUNBUFFERED=1 MEMORY_DATA_DIR=/data AGENT_DATA_DIR=/data
VOLUME /data
USER service
CMD ["python", "-m", "memory_service", "serve"]
