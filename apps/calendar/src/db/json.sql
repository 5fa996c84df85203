-- How the REST interface shows values (interface 8). Postgres writes the bodies in place of calls: each is one expression, or a single SELECT that is STABLE and
-- not STRICT and is called in FROM.

-- A moment in UTC, in whole seconds.
CREATE OR REPLACE FUNCTION moment_json(moment timestamptz) RETURNS text LANGUAGE sql STABLE AS $$
  SELECT to_char(moment AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS"Z"')
$$;

-- An address with all of its fields, also those that were not given, or a free text; null if there is none.
CREATE OR REPLACE FUNCTION location_json(address jsonb) RETURNS TABLE (content json) LANGUAGE sql STABLE AS $$
  SELECT CASE jsonb_typeof(address)
      WHEN 'object' THEN (
        SELECT row_to_json(fields) FROM jsonb_to_record(address) AS fields (city text, "countryCode" text, street text, number text, zip text))
      ELSE address::json
    END
$$;

-- A price; null if there is none.
CREATE OR REPLACE FUNCTION price_json(price_value numeric, price_currency text) RETURNS TABLE (content json) LANGUAGE sql STABLE AS $$
  SELECT row_to_json(fields) FROM (SELECT price_value AS value, price_currency AS currency) AS fields WHERE price_value IS NOT NULL
$$;
