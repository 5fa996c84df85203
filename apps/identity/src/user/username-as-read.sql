-- The same for all usernames that people read as the same: in any case, in any of their forms in Unicode (NFKC), whatever is invisible, and however long and of
-- whatever kind their white space is. Lower case and not case folding: ß and ss stay different. So do letters of different scripts that look alike.
--
-- An index contains what it returns, so it must never change: another one needs another name, and an index of its own. It calls nothing but what Postgres
-- has, because Postgres builds indexes with a search path of its own.
CREATE OR REPLACE FUNCTION username_as_read(username text) RETURNS text LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE AS $$
DECLARE
  -- Default_Ignorable_Code_Point, and others without a shape: of annotations, Khitan, hieroglyphs and music.
  invisible CONSTANT text := '[\u00ad\u034f\u061c\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200f\u202a-\u202e\u2060-\u206f\u3164\ufe00-\ufe0f\ufeff\uffa0\ufff0-\ufffb\U00013430-\U00013442\U00016fe4\U0001bca0-\U0001bca3\U0001d159\U0001d173-\U0001d17a\U000e0000-\U000e0fff]';
  -- White_Space, and the braille pattern without dots.
  space CONSTANT text := '[\u0009-\u000d\u0020\u0085\u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u2800\u3000]+';
  -- Kinds of Cyrillic letters, which are in lower case already.
  unusual CONSTANT text := U&'\1C80\1C81\1C82\1C83\1C84\1C85\1C86\1C87\1C88';
  usual CONSTANT text := U&'\0432\0434\043E\0441\0442\0442\044A\0463\A64B';
  read text;
BEGIN
  -- Nearly all.
  IF username COLLATE "C" ~ '^[!-~]*$' THEN RETURN lower(username COLLATE "C"); END IF;

  read := regexp_replace(normalize(username, NFKC) COLLATE "C", invisible, '', 'g');
  read := btrim(regexp_replace(read COLLATE "C", space, ' ', 'g'));
  -- Characters that were apart may form another one, and lower case may take one apart (İ). A capital sigma has two small forms.
  read := normalize(lower(normalize(read, NFKC) COLLATE pg_unicode_fast), NFKC);
  RETURN replace(translate(read, unusual, usual), U&'\03C2', U&'\03C3');
END
$$;
