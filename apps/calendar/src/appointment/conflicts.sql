-- Appointments that hours or a block do not suit, as they are answered: the first 500 of these references, and how many there are.
CREATE OR REPLACE FUNCTION conflicts_of(conflicting text[]) RETURNS jsonb LANGUAGE sql IMMUTABLE AS $$
  SELECT jsonb_build_object('appointmentReferences', coalesce(to_jsonb(conflicting[:500]), '[]'), 'total', coalesce(cardinality(conflicting), 0))
$$;
