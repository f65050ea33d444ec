//! The lists of files that bear tags. They are apart because a file's tags are read for them, where other lists read an index
//! alone.

use cairn_chassis::list_statement;
use cairn_chassis::sql::{Dialect, Statement};

use super::super::page::{ListScope, below, tagged, up};

const ALL: Dialect = Dialect {
    sqlite: concat!("WITH RECURSIVE ", list_page!(tagged!(sqlite, "files", "$5"))),
    postgres: concat!("WITH RECURSIVE ", list_page!(tagged!(postgres, "files", "$5"))),
};
const ROOT: Dialect = Dialect {
    sqlite: concat!(
        "WITH RECURSIVE ",
        list_page!(concat!("AND folder_id IS NULL", tagged!(sqlite, "files", "$5")))
    ),
    postgres: concat!(
        "WITH RECURSIVE ",
        list_page!(concat!("AND folder_id IS NULL", tagged!(postgres, "files", "$5")))
    ),
};
const IN: Dialect = Dialect {
    sqlite: concat!(
        "WITH RECURSIVE ",
        list_page!(concat!("AND folder_id = $5", tagged!(sqlite, "files", "$6")))
    ),
    postgres: concat!(
        "WITH RECURSIVE ",
        list_page!(concat!("AND folder_id = $5", tagged!(postgres, "files", "$6")))
    ),
};

/// A statement about what stands below the folders of a list.
macro_rules! below_them {
    ($list:literal, $sqlite:expr, $postgres:expr) => {
        Dialect {
            sqlite: list_statement!(
                "WITH RECURSIVE below (id) AS (SELECT id FROM folders WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
                $list,
                concat!(below!(), $sqlite)
            )
            .sqlite,
            postgres: list_statement!(
                "WITH RECURSIVE below (id) AS (SELECT id FROM folders WHERE workspace_id = $1 AND deleted_at IS NULL AND id IN ",
                $list,
                concat!(below!(), $postgres)
            )
            .postgres,
        }
    };
}

const BELOW: Dialect = below_them!(
    "$5",
    concat!(
        ", ",
        list_page!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(sqlite, "files", "$6")))
    ),
    concat!(
        ", ",
        list_page!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(postgres, "files", "$6")))
    )
);

const COUNT_ALL: Dialect = Dialect {
    sqlite: count!(tagged!(sqlite, "files", "$2")),
    postgres: count!(tagged!(postgres, "files", "$2")),
};
const COUNT_ROOT: Dialect = Dialect {
    sqlite: count!(concat!("AND folder_id IS NULL", tagged!(sqlite, "files", "$2"))),
    postgres: count!(concat!("AND folder_id IS NULL", tagged!(postgres, "files", "$2"))),
};
const COUNT_IN: Dialect = Dialect {
    sqlite: count!(concat!("AND folder_id = $2", tagged!(sqlite, "files", "$3"))),
    postgres: count!(concat!("AND folder_id = $2", tagged!(postgres, "files", "$3"))),
};
const COUNT_BELOW: Dialect = below_them!(
    "$2",
    count!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(sqlite, "files", "$3"))),
    count!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(postgres, "files", "$3")))
);

const SEARCH: Dialect = Dialect {
    sqlite: concat!("WITH RECURSIVE ", search_page!(tagged!(sqlite, "files", "$6"))),
    postgres: concat!("WITH RECURSIVE ", search_page!(tagged!(postgres, "files", "$6"))),
};
const SEARCH_BELOW: Dialect = below_them!(
    "$6",
    concat!(
        ", ",
        search_page!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(sqlite, "files", "$7")))
    ),
    concat!(
        ", ",
        search_page!(concat!("AND folder_id IN (SELECT id FROM below)", tagged!(postgres, "files", "$7")))
    )
);

pub(super) fn statements() -> Vec<Statement> {
    let lists = [ALL, ROOT, IN, BELOW];
    let counts = [COUNT_ALL, COUNT_ROOT, COUNT_IN, COUNT_BELOW];
    lists.into_iter().chain(counts).chain([SEARCH, SEARCH_BELOW]).map(Statement::from).collect()
}

pub(super) const fn list(among: &ListScope) -> Dialect {
    match among {
        ListScope::All => ALL,
        ListScope::Root => ROOT,
        ListScope::In(_) => IN,
        ListScope::Below(_) => BELOW,
    }
}

pub(super) const fn count(among: &ListScope) -> Dialect {
    match among {
        ListScope::All => COUNT_ALL,
        ListScope::Root => COUNT_ROOT,
        ListScope::In(_) => COUNT_IN,
        ListScope::Below(_) => COUNT_BELOW,
    }
}

pub(super) const fn search(is_below: bool) -> Dialect {
    if is_below { SEARCH_BELOW } else { SEARCH }
}
