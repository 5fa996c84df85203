# Run once by the entrypoint of the Postgres image: for each service a database, and a role that owns it and can connect to no other.
for service in identity calendar customer notification webhook; do
  password=$(printenv "$(echo "$service" | tr '[:lower:]' '[:upper:]')_DATABASE_PASSWORD")
  psql --username "${POSTGRES_USER:-postgres}" --dbname postgres --quiet --set ON_ERROR_STOP=1 --set service="$service" --set password="$password" <<'SQL'
CREATE ROLE :"service" LOGIN PASSWORD :'password';
CREATE DATABASE :"service" OWNER :"service";
REVOKE ALL ON DATABASE :"service" FROM PUBLIC;
SQL
done
psql --username "${POSTGRES_USER:-postgres}" --dbname postgres --quiet --set ON_ERROR_STOP=1 --command 'REVOKE CONNECT ON DATABASE postgres FROM PUBLIC'
