/** The languages used for people: users can have one of them, and every text for people exists in each. */
export const spokenLanguages = ['de', 'en'] as const;

export type SpokenLanguage = (typeof spokenLanguages)[number];

/** The language of a tag such as `de-AT`, undefined if it is not supported. */
export function spokenLanguage(tag: string | undefined): SpokenLanguage | undefined {
  const primary = tag?.split('-', 1)[0]?.toLowerCase();
  return spokenLanguages.find((language) => language === primary);
}
