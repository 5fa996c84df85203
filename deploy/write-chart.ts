/** Writes the Helm chart into a folder: node deploy/write-chart.ts <folder> [<registry of the images>] */
import { writeChart } from './chart/write-chart.ts';

const [folder, registry] = process.argv.slice(2);
if (folder === undefined) throw new Error('usage: node deploy/write-chart.ts <folder> [<registry>]');
await writeChart(folder, registry);
