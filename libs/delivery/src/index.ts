export { type DeliveryKind, type DeliveryTimings, type Outcome, startDelivery } from './deliver.ts';
export {
  databaseTime,
  type DeliveryLimits,
  dueAfter,
  leaseDueRows,
  type LeasedRow,
  type LeasedTable,
  putBackBlockedRows,
} from './leased-table.ts';
