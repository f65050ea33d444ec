"""The CronJob of `cairn backup` beside the one pod of mode single."""

import unittest

from rendering import CHART, COMPONENT, MESH, environment, helm, kind, objects, pods, refusal, service

TO_A_CLAIM = ("backup.enabled=true", "backup.existingClaim=backups")
TO_A_BUCKET = ("backup.enabled=true", "backup.url=s3://backups/cairn")
NAME = "release-cairn-backup"


def spec(found):
    return pods(found)[f"CronJob/{NAME}"]["spec"]


class Backup(unittest.TestCase):
    def test_it_is_off_until_somebody_says_where_to(self):
        self.assertFalse(kind("CronJob", objects()))
        for key, settings in {
            "backup.url": ["backup.enabled=true"],
            "backup.existingClaim": [*TO_A_CLAIM, "backup.url=s3://b"],
            "backup.existingSecret": ["backup.enabled=true", "backup.url=s3://key:secret@b"],
            "backup.enabled": [*TO_A_CLAIM, "single.persistence.enabled=false"],
            "single.persistence.accessModes": [*TO_A_CLAIM, "single.persistence.accessModes={ReadWriteOncePod}"],
            "mode single": [*MESH, *TO_A_CLAIM],
        }.items():
            self.assertIn(key, refusal(*settings), settings)

    def test_it_shares_the_volume_on_the_node_of_the_one_that_writes(self):
        found = objects(*TO_A_CLAIM)
        terms = spec(found)["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
        labels = pods(found)["StatefulSet/release-cairn-single"]["metadata"]["labels"]
        self.assertEqual([term["topologyKey"] for term in terms], ["kubernetes.io/hostname"])
        self.assertLessEqual(terms[0]["labelSelector"]["matchLabels"].items(), labels.items())
        template = kind("StatefulSet", found)["release-cairn-single"]["spec"]["volumeClaimTemplates"][0]
        claims = [
            volume["persistentVolumeClaim"]["claimName"]
            for volume in spec(found)["volumes"]
            if "persistentVolumeClaim" in volume
        ]
        self.assertEqual(claims, [f"{template['metadata']['name']}-release-cairn-single-0", "backups"])
        self.assertEqual(
            spec(found)["securityContext"], pods(found)["StatefulSet/release-cairn-single"]["spec"]["securityContext"]
        )
        mine = spec(objects(*TO_A_CLAIM, "single.persistence.existingClaim=mine"))["volumes"]
        self.assertIn({"name": "data", "persistentVolumeClaim": {"claimName": "mine"}}, mine)

    def test_no_service_and_no_policy_of_another_pod_takes_it_up(self):
        found = objects(*TO_A_CLAIM)
        labels = pods(found)[f"CronJob/{NAME}"]["metadata"]["labels"]
        self.assertEqual(labels[COMPONENT], "backup")
        for item in kind("Service", found).values():
            self.assertFalse(item["spec"]["selector"].items() <= labels.items())
        policies = [
            name
            for name, item in kind("NetworkPolicy", found).items()
            if item["spec"]["podSelector"]["matchLabels"].items() <= labels.items()
        ]
        self.assertEqual(policies, [NAME])

    def test_it_reaches_buckets_alone(self):
        policy = kind("NetworkPolicy", objects(*TO_A_CLAIM))[NAME]["spec"]
        self.assertEqual((policy["ingress"], policy["egress"]), ([], []))
        policy = kind("NetworkPolicy", objects(*TO_A_BUCKET, "networkPolicy.ports.backup=9000"))[NAME]["spec"]
        ports = [port["port"] for rule in policy["egress"] for port in rule["ports"]]
        self.assertEqual((policy["ingress"], ports), ([], [53, 53, 9000]))
        self.assertEqual(policy["policyTypes"], ["Ingress", "Egress"])

    def test_secrets_come_by_reference_and_no_other_ones(self):
        found = objects(values=CHART / "ci/single-values.yaml")
        told = environment(service("backup", found))
        self.assertEqual(told["CAIRN_BACKUP"]["value"], "s3://backups/cairn?region=eu-west-1")
        self.assertEqual(told["CAIRN_ASSETS"]["value"], "s3://b/p?region=eu-west-1")
        files = {name for name in told if name.endswith("_FILE")}
        self.assertEqual(
            files, {"AWS_ACCESS_KEY_ID_FILE", "AWS_SECRET_ACCESS_KEY_FILE", "CAIRN_BACKUP_KEY_FILE"}
        )
        volume = next(volume for volume in spec(found)["volumes"] if volume["name"] == "secrets")
        self.assertEqual(
            [source["secret"]["name"] for source in volume["projected"]["sources"]],
            ["s3-of-both", "s3-of-both", "backup-key"],
        )
        self.assertNotIn("s3-of-both", str(pods(found)["StatefulSet/release-cairn-single"]))
        told = environment(service("backup", objects(*TO_A_BUCKET)))
        self.assertFalse([name for name in told if name.startswith("AWS_") or "KEY" in name])
        told = environment(service("backup", objects(*TO_A_CLAIM, "assets.url=s3://b", "assets.existingSecret=s3")))
        self.assertEqual(told["AWS_ACCESS_KEY_ID"]["valueFrom"]["secretKeyRef"]["name"], "s3")

    def test_one_at_a_time_and_so_many_stay(self):
        job = kind("CronJob", objects(*TO_A_CLAIM))[NAME]["spec"]
        self.assertEqual(job["concurrencyPolicy"], "Forbid")
        self.assertEqual(service("backup", objects(*TO_A_CLAIM))["args"], ["backup", "--keep", "168"])
        found = objects(values=CHART / "ci/single-values.yaml")
        job = kind("CronJob", found)[NAME]["spec"]
        self.assertEqual((job["schedule"], job["timeZone"]), ("*/15 * * * *", "Europe/Paris"))
        self.assertEqual(service("backup", found)["args"], ["backup"])
        self.assertEqual(spec(found)["tolerations"], [{"key": "knowledge", "operator": "Exists"}])

    def test_its_name_fits_for_long_releases(self):
        names = [name for name in kind("CronJob", objects(*TO_A_CLAIM, release="r" * 53))]
        self.assertEqual([len(name) <= 52 for name in names], [True])

    def test_the_notes_say_how_to_make_one_now_and_what_stands_in_the_clear(self):
        words = [word for setting in TO_A_CLAIM for word in ("--set", setting)]
        notes = helm("install", "r", str(CHART), "--dry-run=client", *words)[1]
        notes = notes[notes.index("NOTES") :]
        self.assertIn("--from=cronjob/r-cairn-backup", notes)
        self.assertIn("in the clear", notes)


if __name__ == "__main__":
    unittest.main()
