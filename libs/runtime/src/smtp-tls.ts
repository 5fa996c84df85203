/**
 * Whether nothing may be sent to a mail server, above all no password, before the connection is encrypted. `smtp://`
 * starts unencrypted, and the server or anybody on the way to it decides whether STARTTLS is offered. So TLS is
 * required, unless the server is on this machine or the URL says `requireTLS=false` or `ignoreTLS=true`.
 */
export function requiresTls(url: string): boolean {
  const { protocol, searchParams } = new URL(url);
  if (protocol === 'smtps:') return true;
  if (searchParams.has('requireTLS')) return searchParams.get('requireTLS') !== 'false';
  return searchParams.get('ignoreTLS') !== 'true' && !isOnThisMachine(url);
}

/**
 * The URL as nodemailer must get it: its parameters override nodemailer's other options, and a bare `?requireTLS` would
 * mean no.
 */
export function withTlsRule(url: string, isRequired = requiresTls(url)): string {
  const rule = new URL(url);
  if (rule.protocol === 'smtp:') rule.searchParams.set('requireTLS', String(isRequired));
  return rule.href;
}

export function isOnThisMachine(url: string): boolean {
  return /^(?:localhost|127(?:\.\d{1,3}){3}|\[::1\])$/i.test(new URL(url).hostname);
}
