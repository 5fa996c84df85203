# Run once by the entrypoint of the Postgres image: a role and a database of its own for each service.
for service in identity calendar customer notification; do
  psql --username "${POSTGRES_USER:-postgres}" --dbname postgres --quiet --set ON_ERROR_STOP=1 --set service="$service" --set password="$POSTGRES_PASSWORD" <<'SQL'
CREATE ROLE :"service" LOGIN PASSWORD :'password';
CREATE DATABASE :"service" OWNER :"service";
REVOKE ALL ON DATABASE :"service" FROM PUBLIC;
SQL
done
