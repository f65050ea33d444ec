// Databases and memories for the setup of tests.

/** A database, and the ids of its fields by name. */
export class Table {
  /** Fields are `[name, type, config]`; there is always a `Name`. */
  static async make(workspace, name, fields = [], of = {}) {
    const made = await workspace.call("POST", "/api/v1/databases", { name, ...of });
    const table = Object.assign(new Table(), { workspace, id: made.id, at: `/databases/${made.id}`, api: `/api/v1/databases/${made.id}` });
    for (const [field, type, config] of fields) await workspace.call("POST", `${table.api}/fields`, { name: field, type, config });
    return table.read();
  }

  async read() {
    const { properties } = await this.workspace.call("GET", this.api);
    this.fields = Object.fromEntries(properties.map(one => [one.name, one.id]));
    return this;
  }

  values(named) {
    return Object.fromEntries(Object.entries(named).map(([name, value]) => [this.fields[name], value]));
  }

  /** Creates a record with those values, by field name, and returns its id. */
  async add(named, more) {
    return (await this.workspace.call("POST", `${this.api}/records`, { values: this.values(named), ...more })).id;
  }

  change(record, named) {
    return this.workspace.call("PATCH", `${this.api}/records/${record}`, { values: this.values(named) });
  }

  trash(record) {
    return this.workspace.call("DELETE", `${this.api}/records/${record}`);
  }

  /** The current record: its version, and its values by field name. */
  async record(id) {
    const read = await this.workspace.call("GET", `${this.api}/records/${id}`);
    return { ...read, of: Object.fromEntries(Object.entries(this.fields).map(([name, field]) => [name, read.values[field]])) };
  }

  view(name, fields) {
    return this.workspace.call("POST", `${this.api}/views`, { name, filters: [], sorts: [], hiddenFieldIds: [], ...fields });
  }
}

/** All field types besides the name. */
export const ALL_TYPES = [
  ["Points", "number"],
  ["Status", "select", { options: [{ name: "Open" }, { name: "In review" }, { name: "Done" }] }],
  ["Areas", "multi_select", { options: [{ name: "Docs" }, { name: "Code" }, { name: "People" }] }],
  ["Due", "date"],
  ["Urgent", "boolean"],
  ["Link", "url"],
  ["Note", "text"],
  ["File", "file_reference"],
  ["Picture", "asset_reference"],
];

/** A member of a memory: a kind and an id. */
export const member = (kind, id) => ({ kind, [{ file: "fileId", folder: "folderId", database: "databaseId" }[kind]]: id });
