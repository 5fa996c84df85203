/** `45 minutes`, `1 hour, 30 minutes`: up to 90 minutes people count in minutes. */
export function formatDuration(minutes: number, locale: string): string {
  const duration = minutes <= 90 ? { minutes } : { hours: Math.floor(minutes / 60), minutes: minutes % 60 };
  return new Intl.DurationFormat(locale, { style: 'long' }).format(duration);
}
