import type { SpokenLanguage } from '@scheduling/runtime';
import { texts as german } from './de.ts';
import { texts as english } from './en.ts';
import type { Texts } from './texts.ts';

export const textsOf: Record<SpokenLanguage, Texts> = { de: german, en: english };
