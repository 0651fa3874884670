#!/bin/sh
# For the entry point of the Postgres image: roles.sql, then the passwords from the environment.
set -eu
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" -f /weir/roles.sql
psql -v ON_ERROR_STOP=1 -U "$POSTGRES_USER" -d "$POSTGRES_DB" \
	-v owner="$WEIR_OWNER_PASSWORD" -v ingester="$WEIR_INGESTER_PASSWORD" -v retriever="$WEIR_RETRIEVER_PASSWORD" <<'SQL'
ALTER ROLE weir_owner PASSWORD :'owner';
ALTER ROLE weir_ingester PASSWORD :'ingester';
ALTER ROLE weir_retriever PASSWORD :'retriever';
SQL
