export interface TestPostgres extends AsyncDisposable {
  /** The address of a database, with user and password. */
  url(database: string): string;
}
