-- The same for all forms of an e-mail address: in any case, composed or not (NFC), and with a domain in its Unicode form or as A-labels (`xn--…`, RFC 5890)
-- or partly so. Two domains have one key if they have the same A-labels; the key has the Unicode form, because that needs only the decoding (RFC 3492).
-- Characters that nobody sees do not count. Never fails, whatever the text is.
--
-- Indexes contain what it returns, so it must never change: another one needs another name, and indexes of its own. It calls nothing but what Postgres
-- has, because Postgres builds indexes with a search path of its own.
CREATE OR REPLACE FUNCTION address_key(address text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  -- Default_Ignorable_Code_Point.
  invisible CONSTANT text := '[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufff8\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff]';
  -- Kinds of sigma, and of Cyrillic letters.
  unusual CONSTANT text := U&'\03F2\03F9\+01D6D3\+01D70D\+01D747\+01D781\+01D7BB\1C80\1C81\1C82\1C83\1C84\1C85\1C86\1C87\1C88';
  usual CONSTANT text := U&'\03C3\03C3\03C3\03C3\03C3\03C3\03C3\0432\0434\043E\0441\0442\0442\044A\0463\A64B';
  local text;
  domain text;
  label text;
  labels text[] := '{}';
  digits text;
  -- The rest is the state of the decoding, by the names of RFC 3492.
  output integer[];
  place integer;
  n bigint;
  i bigint;
  old_i bigint;
  w bigint;
  k bigint;
  t bigint;
  digit bigint;
  delta bigint;
  bias bigint;
BEGIN
  -- Nearly all.
  IF address COLLATE "C" ~ '^[ -~]*$' AND address COLLATE "C" !~* '[@.]xn--' THEN RETURN lower(address COLLATE "C"); END IF;

  domain := coalesce(substring(address COLLATE "C" FROM '@([^@]*)$'), '');
  local := normalize(regexp_replace(left(address, length(address) - length(domain)) COLLATE "C", invisible, '', 'g'), NFC);
  -- A capital sigma has two small forms.
  local := replace(normalize(lower(local COLLATE pg_unicode_fast), NFC), U&'\03C2', U&'\03C3');

  FOR pass IN 1 .. 2 LOOP
    -- As UTS 46 maps names: NFKC and lower case, and some letters that are not in lower case there.
    domain := replace(normalize(translate(domain, unusual, usual), NFKD), U&'\0345', U&'\03B9');
    domain := normalize(regexp_replace(lower(domain COLLATE pg_c_utf8) COLLATE "C", invisible, '', 'g'), NFKC);
    -- A name that was decoded may need it again.
    EXIT WHEN pass = 2 OR domain COLLATE "C" !~ '(^|\.)xn--';

    <<each_label>>
    FOREACH label IN ARRAY string_to_array(domain, '.') LOOP
      labels := labels || label;
      CONTINUE WHEN label COLLATE "C" !~ '^xn--[!-~]*[a-z0-9]$';
      digits := substring(label COLLATE "C" FROM '[a-z0-9]+$');
      output := ARRAY(SELECT ascii(letter) FROM regexp_split_to_table(substr(label, 5, greatest(length(label) - length(digits) - 5, 0)), '') AS letter WHERE letter <> '');
      place := 1;
      n := 128;
      i := 0;
      bias := 72;
      WHILE place <= length(digits) LOOP
        old_i := i;
        w := 1;
        k := 36;
        LOOP
          CONTINUE each_label WHEN place > length(digits);
          digit := strpos('abcdefghijklmnopqrstuvwxyz0123456789', substr(digits, place, 1)) - 1;
          place := place + 1;
          i := i + digit * w;
          t := least(greatest(k - bias, 1), 26);
          EXIT WHEN digit < t;
          w := w * (36 - t);
          k := k + 36;
          -- Further than from the first character to the last one, at any place of a label.
          CONTINUE each_label WHEN greatest(i, w) > 100000000;
        END LOOP;

        delta := CASE WHEN old_i = 0 THEN i / 700 ELSE (i - old_i) / 2 END;
        delta := delta + delta / (cardinality(output) + 1);
        k := 0;
        WHILE delta > 455 LOOP
          delta := delta / 35;
          k := k + 36;
        END LOOP;
        bias := k + 36 * delta / (delta + 38);

        n := n + i / (cardinality(output) + 1);
        i := i % (cardinality(output) + 1);
        CONTINUE each_label WHEN n > 1114111 OR n BETWEEN 55296 AND 57343;
        output := output[:i] || n::integer || output[i + 1:];
        i := i + 1;
      END LOOP;
      labels[cardinality(labels)] := (SELECT string_agg(chr(letter), '' ORDER BY position) FROM unnest(output) WITH ORDINALITY AS letters (letter, position));
    END LOOP;
    domain := array_to_string(labels, '.');
  END LOOP;
  RETURN local || domain;
END
$$;
