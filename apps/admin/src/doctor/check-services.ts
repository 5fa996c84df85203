import { checkHealth } from '@scheduling/rpc/health';
import { type DatabaseService, databaseServices, reasonOf } from '@scheduling/runtime';
import { addressVariable, type System } from '../config.ts';
import { callOptions } from '../call-options.ts';
import { fault, type Finding, notChecked, ok } from './finding.ts';

const timeoutMs = 3_000;

/** Whether the gateway, page and every other service accept requests. */
export async function checkServices(system: System): Promise<Finding[]> {
  return Promise.all([
    checkGateway(system),
    checkPage(system),
    ...databaseServices.map((service) => checkService(service, system.services[service])),
  ]);
}

async function checkGateway({ gateway }: System): Promise<Finding> {
  if (gateway === undefined) return notChecked('gateway', 'PUBLIC_URL');
  try {
    const response = await fetch(`${gateway.replace(/\/+$/, '')}/readyz`, { signal: AbortSignal.timeout(timeoutMs) });
    const body = (await response.text()).slice(0, 100).trim();
    if (response.ok) return ok('gateway', `ready at ${gateway}`);
    return fault(
      'gateway',
      `${gateway}/readyz answers ${response.status} ${body}`,
      'wait if it is being replaced; otherwise read the end of its log',
    );
  } catch (error) {
    const reason = reasonOf((error as Error).cause ?? error);
    return fault(
      'gateway',
      `does not respond at ${gateway}: ${reason}`,
      'check whether its process is running, and whether the DNS name and the load balancer point to it',
    );
  }
}

/**
 * With a link that does not work, as a person would see it: from outside, page is reached by the paths of its pages only.
 * What it answers is marked as not to be indexed.
 */
async function checkPage({ page }: System): Promise<Finding> {
  if (page === undefined) return notChecked('page', 'PAGE_URL');
  const url = `${page}/booking/doctor`;
  try {
    const { status, headers, body } = await fetch(url, { signal: AbortSignal.timeout(timeoutMs) });
    await body?.cancel();
    if (headers.get('x-robots-tag')?.includes('noindex') !== true) {
      const remedy =
        'have the proxy send /book, /booking, /decide and /calendar to page (deploy/README.md, "The way in"); until then links in mails do not work';
      return fault('page', `${url} is answered with ${status}, but not by page`, remedy);
    }
    if (status === 404) return ok('page', `serves the pages of persons at ${page}`);
    return fault(
      'page',
      `${url} answers ${status}`,
      'check calendar and the customer service, which it needs; then read the end of its log',
    );
  } catch (error) {
    const reason = reasonOf((error as Error).cause ?? error);
    return fault(
      'page',
      `does not respond at ${page}: ${reason}`,
      'check whether its process is running, and whether the DNS name and the load balancer point to it; until then links in mails do not work',
    );
  }
}

async function checkService(service: DatabaseService, address: string | undefined): Promise<Finding> {
  if (address === undefined) return notChecked(service, addressVariable(service));
  try {
    const status = await checkHealth(service, address, callOptions());
    if (status === 'SERVING') return ok(service, `serves at ${address}`);
    return fault(
      service,
      `reports ${status} at ${address}`,
      'wait if it is being replaced; otherwise read the end of its log',
    );
  } catch {
    return fault(
      service,
      `does not respond at ${address}`,
      `check whether its process is running, and read the end of its log; clients get 503 for what needs ${service}`,
    );
  }
}
