//! `POST /api/v1/search_context` (spec 2.6, 4.4): results, citations, and parameters.

use crate::support::citations;
use crate::support::http::{each, id, items, text};
use crate::support::prelude::*;

scenarios![
    every_strategy_finds_and_cites,
    meaning_is_found_without_the_words,
    a_citation_names_the_headings_above_it,
    every_file_type_is_cited_by_lines,
    quoted_phrases_and_excluded_terms_are_understood,
    sub_queries_are_fused_with_the_query,
    a_trace_explains_the_score,
    limits_narrow_an_answer,
    an_unknown_word_finds_nothing_by_keyword,
    the_mode_is_echoed,
    wrong_parameters_are_all_named_at_once,
    a_workspace_is_never_searched_from_another,
];

const GUIDE: &str = "# Deployment guide\n\nHow to bring the service up.\n\n## Database\n\n\
    The zanzibar cluster keeps three replicas.\nEach replica stores its journal on a separate volume.\n\n\
    ## Backups\n\nA snapshot is taken every night and kept for thirty days.\n";

async fn every_strategy_finds_and_cites(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let folder = workspace.folder("ops", None).await;
    let created = workspace.file("guide.md", Some(&folder), GUIDE).await;
    workspace.file("other.md", None, "# Cooking\n\nBoil the pasta in salted water for nine minutes.\n").await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let query = json!({"query": "zanzibar cluster replicas", "strategy": strategy});
        let answer = search_after_all(&workspace, query).await;
        let best = &items(&answer["results"])[0];
        assert_eq!(best["fileId"], created.json()["id"], "{strategy}: {answer}");
        assert!(text(best, "content").contains("zanzibar"), "{strategy}: {best}");
        let scores: Vec<f64> =
            items(&answer["results"]).iter().filter_map(|result| result["score"].as_f64()).collect();
        assert!(scores.is_sorted_by(|one, next| one >= next), "{strategy}: not best first: {scores:?}");
        citations::check_all(&workspace.token, &answer).await;
    }
}

async fn meaning_is_found_without_the_words(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let wanted = workspace.file_id("dogs.md", None, "# Dogs\n\nPuppies and dogs bark at the cat.\n").await;
    workspace
        .file("tax.md", None, "# Taxes\n\nInvoices are due within thirty days of the quarter's end.\n")
        .await;
    let last =
        workspace.file("bread.md", None, "# Bread\n\nKnead flour, water and yeast for ten minutes.\n").await;
    let query = json!({"query": "puppy kitten", "strategy": "semantic"});
    let answer = workspace.search_after(&last.change(), query).await;
    assert_eq!(items(&answer["results"])[0]["fileId"], json!(wanted), "{answer}");
    citations::check_all(&workspace.token, &answer).await;
}

async fn a_citation_names_the_headings_above_it(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let paragraph = "Sentences that only make this section long enough to stand alone. ".repeat(40);
    let content = format!(
        "---\ntitle: front matter\n---\n# Top\n\n{paragraph}\n\n## Middle\n\n{paragraph}\n\n### Low\n\n\
         The quokka lives here.\n\n{paragraph}\n\n```\n# no heading\n```\n\n## After\n\n{paragraph} The numbat too.\n"
    );
    let created = workspace.file("deep.md", None, &content).await;
    for (word, headings) in [("quokka", json!(["Top", "Middle", "Low"])), ("numbat", json!(["Top", "After"]))]
    {
        let answer =
            workspace.search_after(&created.change(), json!({"query": word, "strategy": "keyword"})).await;
        let result = &items(&answer["results"])[0];
        assert!(text(result, "content").contains(word), "{result}");
        assert_eq!(result["chunk"]["location"]["headingPath"], headings, "{result}");
        citations::check_all(&workspace.token, &answer).await;
    }
}

async fn every_file_type_is_cited_by_lines(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let files = [
        ("a.json", "json", "{\n  \"service\": {\n    \"name\": \"wombat\",\n    \"port\": 80\n  }\n}\n"),
        ("a.yaml", "yaml", "service:\n  name: bilby\n  ports:\n    - 80\n    - 443\n"),
        ("a.txt", "text", "first line\n\nthe third line names the dunnart\n\nlast line\n"),
        ("broken.json", "json", "{ this is not json: potoroo\n"),
        ("broken.yaml", "yaml", "a: [1, 2\nb: }\n  bandicoot\n"),
    ];
    let words = ["wombat", "bilby", "dunnart", "potoroo", "bandicoot"];
    let mut last_change = String::new();
    for (name, kind, content) in files {
        last_change = workspace.typed_file(name, kind, None, content).await.change();
    }
    for (word, (name, ..)) in words.into_iter().zip(files) {
        let answer =
            workspace.search_after(&last_change, json!({"query": word, "strategy": "keyword"})).await;
        let result = &items(&answer["results"])[0];
        assert_eq!(text(&result["citation"], "path"), format!("/{name}"), "{answer}");
        assert!(text(result, "content").contains(word), "{result}");
        citations::check_all(&workspace.token, &answer).await;
    }
}

async fn quoted_phrases_and_excluded_terms_are_understood(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let together = workspace.file_id("one.md", None, "The silver kettle whistles.\n").await;
    let apart = workspace.file("two.md", None, "A kettle of copper and a silver spoon.\n").await;
    let found = async |query: &str| {
        let body = json!({"query": query, "strategy": "keyword"});
        let answer = workspace.search_after(&apart.change(), body).await;
        let mut ids: Vec<String> =
            items(&answer["results"]).iter().map(|result| text(result, "fileId")).collect();
        ids.sort();
        ids
    };
    let mut both = vec![together.clone(), id(&apart.json())];
    both.sort();
    assert_eq!(found("silver kettle").await, both);
    assert_eq!(found("\"silver kettle\"").await, [together.as_str()]);
    assert_eq!(found("kettle -copper").await, [together.as_str()]);
}

async fn sub_queries_are_fused_with_the_query(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let first =
        workspace.file_id("one.md", None, "# Lighthouse\n\nThe lighthouse keeper trims the lamp.\n").await;
    let second =
        workspace.file("two.md", None, "# Harbour\n\nThe xylograph hangs in the harbour office.\n").await;
    let hyde = "The keeper of the lighthouse climbs the stairs each evening, trims the wick of the lamp, polishes the \
        lens and writes the hour into the log book, so that ships passing in the dark know where the rocks are.";
    let body = json!({"query": "lighthouse", "explain": true, "searches": [
        {"type": "lex", "text": "xylograph"}, {"type": "vec", "text": "harbour office"}, {"type": "hyde", "text": hyde},
    ]});
    let answer = workspace.search_after(&second.change(), body).await;
    let found = each_file(&answer);
    assert!(found.contains(&first) && found.contains(&id(&second.json())), "{answer}");
    let mut types: Vec<String> = items(&answer["results"][0]["trace"]["subqueries"])
        .iter()
        .map(|part| text(part, "type"))
        .filter(|kind| ["lex", "vec", "hyde"].contains(&kind.as_str()))
        .collect();
    types.sort();
    assert_eq!(types, ["hyde", "lex", "vec"], "{answer}");
    citations::check_all(&workspace.token, &answer).await;
}

async fn a_trace_explains_the_score(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let created = workspace.file("guide.md", None, GUIDE).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let body = json!({"query": "zanzibar replicas", "strategy": strategy, "explain": true});
        let answer = workspace.search_after(&created.change(), body).await;
        assert!(!items(&answer["results"]).is_empty(), "{answer}");
        for result in items(&answer["results"]) {
            let trace = &result["trace"];
            let sum: f64 =
                items(&trace["subqueries"]).iter().filter_map(|part| part["contribution"].as_f64()).sum();
            let bonuses = trace["bonuses"].as_f64().unwrap();
            let total = trace["final"].as_f64().unwrap();
            assert!(
                (sum + bonuses - total).abs() < 1e-6,
                "{strategy}: {sum} + {bonuses} is not {total}: {trace}"
            );
            assert!((result["score"].as_f64().unwrap() - total).abs() < 1e-6, "{strategy}: {result}");
        }
    }
    let plain = workspace.search_after(&created.change(), json!({"query": "zanzibar"})).await;
    assert!(items(&plain["results"]).iter().all(|result| result.get("trace").is_none()), "{plain}");
}

async fn limits_narrow_an_answer(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let mut change = String::new();
    for number in 0..12 {
        let content =
            format!("# Note {number}\n\nThe marmalade of day {number} {}\n", "sets slowly. ".repeat(20));
        change = workspace.file(&format!("{number}.md"), None, &content).await.change();
    }
    let ask = async |body: Value| workspace.search_after(&change, body).await;
    assert_eq!(items(&ask(json!({"query": "marmalade"})).await["results"]).len(), 10, "ten is the default");
    assert_eq!(items(&ask(json!({"query": "marmalade", "limit": 3})).await["results"]).len(), 3);
    assert_eq!(items(&ask(json!({"query": "marmalade", "limit": 50})).await["results"]).len(), 12);
    let all = ask(json!({"query": "marmalade", "limit": 50})).await;
    let scores: Vec<f64> =
        items(&all["results"]).iter().filter_map(|result| result["score"].as_f64()).collect();
    let middle = scores[5];
    let expected = scores.iter().filter(|score| **score >= middle).count();
    let narrowed = ask(json!({"query": "marmalade", "limit": 50, "minScore": middle})).await;
    assert_eq!(items(&narrowed["results"]).len(), expected, "minScore {middle} of {scores:?}");
    ask_badly(&workspace, json!({"query": "x", "minScore": "high"})).await;
    let budgeted = ask(json!({"query": "marmalade", "limit": 50, "tokenBudget": 200})).await;
    let kept = items(&budgeted["results"]).len();
    assert!((1..12).contains(&kept), "a budget of 200 tokens kept {kept} of 12");
    assert!(each(&budgeted["coverage"], "code").contains(&"token_budget"), "{}", budgeted["coverage"]);
}

async fn an_unknown_word_finds_nothing_by_keyword(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let created = workspace.file("guide.md", None, GUIDE).await;
    let answer =
        workspace.search_after(&created.change(), json!({"query": "qwxyzzy", "strategy": "keyword"})).await;
    assert_eq!(answer["results"], json!([]));
    let empty = deployment.workspace().await;
    let path = "/api/v1/search_context";
    let answer = empty.token.post(path).json(json!({"query": "anything at all"})).await.expect(200).json();
    assert_eq!(answer["results"], json!([]), "an empty workspace has no evidence");
}

async fn the_mode_is_echoed(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let created = workspace.file("guide.md", None, GUIDE).await;
    let default = workspace.search_after(&created.change(), json!({"query": "zanzibar"})).await;
    assert_eq!(default["mode"], "balanced");
    for mode in ["fast", "balanced", "fresh"] {
        let answer =
            workspace.search_after(&created.change(), json!({"query": "zanzibar", "mode": mode})).await;
        assert_eq!(answer["mode"], mode);
        assert!(!items(&answer["results"]).is_empty(), "{mode}: {answer}");
    }
}

async fn wrong_parameters_are_all_named_at_once(deployment: &Deployment) {
    let workspace = deployment.workspace().await;
    let body = json!({"strategy": "hybird", "mode": "slow", "limit": 51, "explain": "yes", "tokenBudget": -1,
        "searches": [{"type": "lex"}, {"type": "fuzzy", "text": "x"}], "minscore": 0.5});
    let reply = workspace.token.post("/api/v1/search_context").json(body).await;
    let error = reply.expect_error(400, "VALIDATION_ERROR");
    let mut paths = each(&error["errors"], "path");
    paths.sort_unstable();
    let expected = [
        "explain",
        "limit",
        "minscore",
        "mode",
        "query",
        "searches[0].text",
        "searches[1].type",
        "strategy",
        "tokenBudget",
    ];
    assert_eq!(paths, expected, "{error}");
    assert!(error.to_string().contains("minScore"), "names the nearest known field: {error}");
    let nine: Vec<Value> = (0..9).map(|_| json!({"type": "lex", "text": "x"})).collect();
    for body in
        [json!({"query": "x", "searches": nine}), json!({"query": ""}), json!({"query": "x", "limit": 0})]
    {
        ask_badly(&workspace, body).await;
    }
}

async fn a_workspace_is_never_searched_from_another(deployment: &Deployment) {
    let (ours, theirs) = (deployment.workspace().await, deployment.workspace().await);
    let secret = theirs.file("secret.md", None, "The capybara password is seven.\n").await;
    let mine = ours.file("mine.md", None, "The guanaco password is eight.\n").await;
    theirs.search_after(&secret.change(), json!({"query": "capybara"})).await;
    for strategy in ["keyword", "semantic", "hybrid"] {
        let body = json!({"query": "capybara password", "strategy": strategy, "limit": 50});
        let answer = ours.search_after(&mine.change(), body).await;
        let foreign = id(&secret.json());
        assert!(!each_file(&answer).contains(&foreign), "{strategy}: {answer}");
        assert!(!answer.to_string().contains("capybara"), "{strategy}: {answer}");
    }
}

async fn ask_badly(workspace: &Workspace, body: Value) {
    workspace.token.post("/api/v1/search_context").json(body).await.expect_error(400, "VALIDATION_ERROR");
}

/// A search that reflects every write so far: another, harmless write provides the position.
async fn search_after_all(workspace: &Workspace, body: Value) -> Value {
    let made = workspace.token.post("/api/v1/folders").json(json!({"name": "marker"})).await.expect(201);
    workspace.search_after(&made.change(), body).await
}

fn each_file(answer: &Value) -> Vec<String> {
    items(&answer["results"]).iter().map(|result| text(result, "fileId")).collect()
}
