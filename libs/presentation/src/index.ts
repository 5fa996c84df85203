export { asciiDomainOf, uriAddressOf } from './ascii-address.ts';
export { multiLine, shorten, singleLine } from './clean-text.ts';
export { type ContactLine, contactOf } from './contact-lines.ts';
export { linesOfLocation, titleOf, webAddressOf } from './describe-place.ts';
export { findBareLinks, prefixedLink, withoutHosts } from './find-links.ts';
export {
  formatDay,
  formatMoment,
  formatPeriod,
  formatStart,
  formatTimes,
  type Period,
  regionalLocale,
  type Times,
} from './format-period.ts';
export { formatDuration } from './format-duration.ts';
export { formatPrice } from './format-price.ts';
export { occursTwice } from './occurs-twice.ts';
