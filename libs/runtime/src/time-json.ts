/** As the API writes an instant: `YYYY-MM-DDThh:mm:ssZ`, in UTC, in whole seconds. */
export function toTimeJson(time: Date): string {
  return `${time.toISOString().slice(0, 19)}Z`;
}
