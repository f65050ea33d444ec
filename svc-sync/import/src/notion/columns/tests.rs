use super::*;

/// Rows are `r1.md` to `r9.md` of database 100, `s1.md` of database 200; attachments end in `.png`.
struct Paths;

impl LinkResolver for Paths {
    fn row(&self, path: &str) -> Option<(usize, usize)> {
        let number = path.strip_suffix(".md")?.rsplit('/').next()?;
        let database = match number.get(..1)? {
            "r" => 100,
            "s" => 200,
            _ => return None,
        };
        Some((database, database + number.get(1..)?.parse::<usize>().ok()?))
    }

    fn asset(&self, path: &str) -> Option<usize> {
        (path.ends_with(".png") && !path.contains(':')).then_some(path.len())
    }
}

fn typed(values: &[&str]) -> PropertyKind {
    let mut csv = csv::Writer::from_writer(Vec::new());
    csv.write_record(["Name", "X"]).unwrap();
    values.iter().for_each(|value| csv.write_record(["row", value]).unwrap());
    let text = String::from_utf8(csv.into_inner().unwrap()).unwrap();
    let table = Table::read(&text).unwrap();
    let columns = types(&table, &HashMap::new(), &Paths);
    // Nothing is dropped: every value is one of the type.
    for text in table.values(1) {
        assert!(value(&columns[1], text, &Paths).is_some(), "{text}");
    }
    columns[1].property.kind.clone()
}

fn strings(values: &[&str]) -> Vec<String> {
    values.iter().map(|value| (*value).to_owned()).collect()
}

#[test]
fn each_type_is_told_by_all_values() {
    for (values, kind) in [
        (&["Yes", "", "No"][..], PropertyKind::Boolean),
        (&["1", "-2.5", "0.6666666666666666", "0"], PropertyKind::Number),
        (&["May 2, 2023", "May 3, 2023 1:00 PM"], PropertyKind::Date),
        (&["https://a.b/c", "http://d"], PropertyKind::Url),
        (&["A (r1.md), B, (x) (p/r2.md)", "C (r3.md)"], PropertyKind::Relation(100)),
        (&["a/b.png, c.png", "d.png"], PropertyKind::Assets),
        (&["a, b", "b", "c"], PropertyKind::MultiSelect(strings(&["a", "b", "c"]))),
        (&["High", "Low", "High"], PropertyKind::Select(strings(&["High", "Low"]))),
        (&["one", "two"], PropertyKind::Text),
        (&["", ""], PropertyKind::Text),
    ] {
        assert_eq!(typed(values), kind, "{values:?}");
    }
}

#[test]
fn a_value_that_does_not_fit_makes_the_column_text() {
    for values in [
        &["Yes", "Maybe"][..],
        &["1", "about 2"],
        &["007", "1"],
        &["12345678901234567890", "1"],
        &["May 2, 2023", "soon"],
        &["https://a.b", "a.b"],
        &["A (r1.md)", "B (s1.md)"],
        &["A (r1.md)", "no link"],
        &["a.png", "https://a.b/c.png"],
        &["a, a", "b, c"],
        &["High", "high", "High"],
        &["line\nline", "line\nline"],
    ] {
        assert_eq!(typed(values), PropertyKind::Text, "{values:?}");
    }
}

#[test]
fn ranges_have_a_property_for_their_end_with_a_name_of_its_own() {
    let table =
        Table::read("Name,X,X (end)\na,\"May 2, 2023 → May 4, 2023\",taken\nb,\"May 3, 2023\",\n").unwrap();
    let columns = types(&table, &HashMap::new(), &Paths);
    assert_eq!(columns[1].end.as_deref(), Some("X (end) (2)"));
    assert_eq!(
        value(&columns[1], Table::cell(&table.rows[0], 1), &Paths),
        Some((Value::Date("2023-05-02".into()), Some(Value::Date("2023-05-04".into()))))
    );
    assert_eq!(value(&columns[1], "", &Paths), None);
}

#[test]
fn the_first_column_is_the_title_under_its_own_name() {
    let table = Table::read("Task,X\n1,2\n").unwrap();
    assert_eq!(
        types(&table, &HashMap::new(), &Paths)[0].property,
        Property { name: "Task".into(), kind: PropertyKind::Text }
    );
}

#[test]
fn brackets_without_end_take_no_time() {
    assert_eq!(rows(&" (a".repeat(100_000), &Paths), None);
    assert_eq!(rows(&"a), ".repeat(100_000), &Paths), None);
}

#[test]
fn what_pages_say_of_their_properties_decides_where_values_leave_a_choice() {
    let table = Table::read("Name,A,B,C,D\n1,x,\"p, q\",Yes,soon\n2,y,r,No,1\n").unwrap();
    let said = [("A", "select"), ("B", "multi_select"), ("C", "text"), ("D", "number")];
    let said = said.into_iter().map(|(name, kind)| (name.to_owned(), kind.to_owned())).collect();
    let kinds: Vec<PropertyKind> =
        types(&table, &said, &Paths).into_iter().map(|column| column.property.kind).collect();
    assert_eq!(
        kinds[1..],
        [
            PropertyKind::Select(strings(&["x", "y"])),
            PropertyKind::MultiSelect(strings(&["p", "q", "r"])),
            PropertyKind::Text,
            PropertyKind::Text,
        ]
    );
}
