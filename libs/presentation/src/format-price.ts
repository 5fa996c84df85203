import type { Price } from '@scheduling/contracts/calendar/v1';

export function formatPrice({ value, currency }: Price, locale: string): string {
  return new Intl.NumberFormat(locale, { style: 'currency', currency }).format(value);
}
